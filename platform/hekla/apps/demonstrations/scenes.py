"""What a demonstration is: its jobs, its texts, and its outcome when nothing disturbs it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from hekla.apps.demonstrations.stage import GPU, SPEED, Stage
from hekla.domain.jobspec import JobSpec

Words = str | Promise
_CPU_PER_GPU = 4


@dataclass(frozen=True, slots=True)
class DemoJob:
    """One job. `roles`: replicas by task; `seconds`: run time of its pods; `queue`: index in the stage's queues;
    `least`: its minimum of pods; `later`: it is submitted when all pods of the previous job have been running for
    a while. `resources`: of each pod; by default `gpus`, with CPUs. `busy_gpus`: how many GPUs its work keeps busy;
    None: not measured. `fields`: more of its spec; `task_fields`: more of each task.
    """

    name: str
    roles: Mapping[str, int]
    seconds: int
    queue: int = 0
    least: int | None = None
    later: bool = False
    annotations: Mapping[str, str] = field(default_factory=dict)
    gpus: int = 1
    resources: Mapping[str, str] = field(default_factory=dict)
    busy_gpus: float | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    task_fields: Mapping[str, Any] = field(default_factory=dict)

    def spec(self, name: str, stage: Stage, without: str = "") -> JobSpec:
        """The job to submit, with this name. `without`: a field of its tasks that is left out."""
        least = {"min_available": self.least} if self.least else {}
        document = {
            "name": name,
            "queue": stage.queues[self.queue],
            "kind": "demonstration",
            "tasks": [self._task(role, replicas, without) | least for role, replicas in self.roles.items()],
            "annotations": dict(self.annotations),
            **self.fields,
        }
        return JobSpec.parse(document | least)

    def _task(self, role: str, replicas: int, without: str) -> dict[str, Any]:
        load = {} if self.busy_gpus is None else {"HEKLA_SIM_GPU_LOAD": str(self.busy_gpus)}
        return {
            "name": role,
            "replicas": replicas,
            "command": ["train"],
            "resources": dict(self.resources) or {"cpu": str(_CPU_PER_GPU * self.gpus), GPU: str(self.gpus)},
            "env": {"HEKLA_SIM_SECONDS": str(self.seconds * SPEED), **load},
            **{name: value for name, value in self.task_fields.items() if name != without},
        }


class Topic(StrEnum):
    """Demonstrations about one question, under one heading."""

    GANGS = "gangs"
    NODES = "nodes"
    CARDS = "cards"
    ORDER = "order"

    @property
    def heading(self) -> Words:
        return _TOPICS[self]


_TOPICS: Mapping[Topic, Words] = {
    Topic.GANGS: _("Gangs and elastic jobs"),
    Topic.NODES: _("Choice of nodes"),
    Topic.CARDS: _("Cards and CPUs within a node"),
    Topic.ORDER: _("Order and shares"),
}


class Measure(StrEnum):
    """What is measured of a run; a whole number each. The subject is a job of the demonstration."""

    NODES = "the most nodes of a job"
    RACKS = "the most racks of a job"
    CELLS = "the most NUMA cells of a pod"
    LINKED = "jobs whose cards all have fast links"
    CARD_MEMORY = "the most GiB of one card that jobs held together"
    ENDED = "other jobs that had ended when the subject started"
    RANK = "the place of the subject in the order of starts"
    HELD = "GPUs of the subject when most jobs ran"
    SHARE = "the smallest dominant share when most jobs ran, in per cent"
    AT_DATA = "pods on nodes that cache their data"
    UNTIL_END = "pods that ran to their end in the zone"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ends: the `value` of the measure, and `evicted` pods of each job, all by `action`; none if empty."""

    value: int
    evicted: tuple[int, ...] = ()
    action: str = ""


@dataclass(frozen=True, slots=True)
class Without:
    """The same demonstration without one plugin or action of the policy, or one field of its tasks, for comparison."""

    name: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One demonstration. `story`: what will happen, and why it matters; `watch`: what to watch; `inputs`: where other
    clusters get what the plugin reads.

    If nothing disturbs it, its jobs complete with the `outcome`. `subject`: the number of the job that is measured, if
    the measure is about one; by default the last. `after_first`: the drawing shows who is next when the first job has
    ended, instead of the most jobs.
    """

    name: str
    topic: Topic
    title: Words
    story: tuple[Words, ...]
    watch: Words
    stage: Stage
    acts: tuple[DemoJob, ...]
    measure: Measure
    outcome: Outcome
    without: Without | None = None
    subject: int = 0
    after_first: bool = False
    inputs: Words = ""

    def has(self, without: str) -> bool:
        """Whether it can run without this plugin, action or field; empty: with all of them."""
        return not without or (self.without is not None and self.without.name == without)

    def expected(self, without: str) -> Outcome:
        """The outcome of a run."""
        return self.without.outcome if without and self.without else self.outcome

    @property
    def instead(self) -> str:
        """The plugin that takes the place of the one that is left out; empty: none."""
        return self.stage.instead.get(self.without.name, "") if self.without else ""

    @property
    def subject_number(self) -> int:
        """The number of the job that is measured, from 1."""
        return self.subject or len(self.acts)
