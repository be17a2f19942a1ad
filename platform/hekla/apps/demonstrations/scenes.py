"""What a demonstration is: its jobs, its texts, and its outcome when nothing disturbs it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.utils.functional import Promise

from hekla.apps.demonstrations.stages import GPU, SPEED, Stage
from hekla.domain.jobspec import JobSpec

Words = str | Promise
_CPU_PER_GPU = 4


@dataclass(frozen=True, slots=True)
class DemoJob:
    """One job. `roles`: replicas by task; `seconds`: run time of its pods; `queue`: index in the stage's queues;
    `least`: its minimum of pods; `later`: it is submitted when all pods of the previous job have been running for
    a while. `fields`: more of its spec.
    """

    name: str
    roles: Mapping[str, int]
    seconds: int
    queue: int = 0
    least: int | None = None
    later: bool = False
    annotations: Mapping[str, str] = field(default_factory=dict)
    gpus: int = 1
    fields: Mapping[str, Any] = field(default_factory=dict)

    def spec(self, name: str, stage: Stage) -> JobSpec:
        """The job to submit, with this name."""
        least = {"min_available": self.least} if self.least else {}
        document = {
            "name": name,
            "queue": stage.queues[self.queue],
            "kind": "demonstration",
            "tasks": [self._task(role, replicas) | least for role, replicas in self.roles.items()],
            "annotations": dict(self.annotations),
            **self.fields,
        }
        return JobSpec.parse(document | least)

    def _task(self, role: str, replicas: int) -> dict[str, Any]:
        return {
            "name": role,
            "replicas": replicas,
            "command": ["train"],
            "resources": {"cpu": str(_CPU_PER_GPU * self.gpus), GPU: str(self.gpus)},
            "env": {"HEKLA_SIM_SECONDS": str(self.seconds * SPEED)},
        }


class Announcement(StrEnum):
    """What is true when all jobs of a run have completed."""

    ONE_BY_ONE = "each job started after the previous one had ended"
    ONE_NODE = "all pods of a job were on one node"
    SEVERAL_NODES = "the pods of a job were on several nodes"
    ONE_RACK = "all pods of a job were in one rack"
    SEVERAL_RACKS = "the pods of a job were in several racks"
    LAST_AT_ONCE = "the last job started before another had ended"
    LAST_WAITED = "the last job started after another had ended"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ends: `evicted` pods of each job, all by `action`; none if empty."""

    announcements: frozenset[Announcement] = frozenset()
    evicted: tuple[int, ...] = ()
    action: str = ""


@dataclass(frozen=True, slots=True)
class Without:
    """The same demonstration without one plugin or action of the policy, for comparison."""

    name: str
    lesson: Words
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One demonstration. `story`: what will happen, and why it matters; `watch`: what to watch; `lesson`: the result.

    If nothing disturbs it, its jobs complete with the `outcome`.
    """

    name: str
    title: Words
    story: tuple[Words, ...]
    watch: Words
    lesson: Words
    stage: Stage
    acts: tuple[DemoJob, ...]
    outcome: Outcome = Outcome()
    without: Without | None = None

    def has(self, without: str) -> bool:
        """Whether it can run without this plugin or action; empty: with all of them."""
        return not without or (self.without is not None and self.without.name == without)

    def expected(self, without: str) -> tuple[Outcome, Words]:
        """The outcome and the lesson of a run."""
        if without and self.without is not None:
            return self.without.outcome, self.without.lesson
        return self.outcome, self.lesson
