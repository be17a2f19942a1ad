"""All demonstrations as data: their jobs, their texts, and the outcome when nothing disturbs them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from hekla.apps.demonstrations.stages import ELASTIC, GANGS, GPU, SPEED, TOGETHER, Stage
from hekla.domain.errors import NotFound
from hekla.domain.jobspec import JobSpec

PAUSE_SECONDS = 4
"""How long all pods of a job run before a `later` job is submitted."""

Words = str | Promise


@dataclass(frozen=True, slots=True)
class DemoJob:
    """One job. `roles`: replicas by task; `seconds`: run time of its pods; `queue`: index in the stage's queues;
    `least`: its minimum of pods; `later`: it is submitted when all pods of the previous job have been running for
    PAUSE_SECONDS; `evicted`: how many of its pods the demonstration evicts.
    """

    name: str
    roles: Mapping[str, int]
    seconds: int
    queue: int = 0
    least: int | None = None
    later: bool = False
    annotations: Mapping[str, str] = field(default_factory=dict)
    evicted: int = 0

    def spec(self, name: str, stage: Stage) -> JobSpec:
        """The job to submit, with this name."""
        least = {"min_available": self.least} if self.least else {}
        document = {
            "name": name,
            "queue": stage.queues[self.queue],
            "kind": "demonstration",
            "tasks": [self._task(role, replicas) | least for role, replicas in self.roles.items()],
            "annotations": dict(self.annotations),
        }
        return JobSpec.parse(document | least)

    def _task(self, role: str, replicas: int) -> dict[str, Any]:
        return {
            "name": role,
            "replicas": replicas,
            "command": ["train"],
            "resources": {GPU: "1"},
            "env": {"HEKLA_SIM_SECONDS": str(self.seconds * SPEED)},
        }


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One demonstration. `story`: what will happen, and why it matters; `watch`: what to watch; `lesson`: the result.

    If nothing disturbs it, its jobs complete, with the evictions of `acts` by the scheduler's `action`. `one_by_one`:
    each job starts after the previous one has ended; `one_node`: all pods of a job are on one node.
    """

    name: str
    title: Words
    story: tuple[Words, ...]
    watch: Words
    lesson: Words
    stage: Stage
    acts: tuple[DemoJob, ...]
    action: str = ""
    one_by_one: bool = False
    one_node: bool = False


def get(name: str) -> Demonstration:
    """The demonstration with this name. Raises NotFound."""
    found = next((one for one in DEMONSTRATIONS if one.name == name), None)
    if found is None:
        raise NotFound(str(_("Unknown demonstration.")))
    return found


_TALK = {"volcano.sh/task-topology-affinity": "ps,worker"}
_NET = {"ps": 2, "worker": 4}
_TEN = {"worker": 10}

DEMONSTRATIONS = (
    Demonstration(
        name="gangs",
        title=_("Two gangs, room for one"),
        story=(
            _(
                "Two jobs of four workers are submitted together. Each worker needs one GPU. The simulated "
                "nodes have four."
            ),
            _("One job gets all four GPUs and runs. The other gets none, waits, and runs when the first has finished."),
            _("If pods were scheduled one by one, each job could get two GPUs and wait for the others forever."),
        ),
        watch=_("the squares. All squares of one job fill together while the other job stays empty. Then they swap."),
        lesson=_("One gang ran while the other waited. No GPU was allocated to a job that could not start."),
        stage=GANGS,
        acts=(DemoJob("first", {"worker": 4}, seconds=10), DemoJob("second", {"worker": 4}, seconds=10)),
        one_by_one=True,
    ),
    Demonstration(
        name="together",
        title=_("Parameter servers next to their workers"),
        story=(
            _(
                "Three jobs of two parameter servers and four workers are submitted together to three nodes of "
                "six GPUs."
            ),
            _("The jobs declare that their servers and workers communicate, so each job gets one node."),
            _("Without this, pods go wherever there is room and communicate over the network."),
        ),
        watch=_("the nodes of each job: one node runs all six pods."),
        lesson=_("Each job had its own node. No server was separated from its workers."),
        stage=TOGETHER,
        acts=tuple(DemoJob(name, _NET, seconds=15, annotations=_TALK) for name in ("first", "second", "third")),
        one_node=True,
    ),
    Demonstration(
        name="elastic-at-once",
        title=_("Two elastic jobs at the same time"),
        story=(
            _(
                "There are ten GPUs. Two jobs are submitted together to one queue. Each needs five workers and "
                "can use ten."
            ),
            _("Each job gets the five workers that it needs to start. No job takes ten while the other waits."),
            _("The elastic workers, those above the minimum, run as soon as GPUs are free."),
        ),
        watch=_("five squares of each job fill first, then the other five. No pod is evicted."),
        lesson=_("Both jobs started immediately with their minimum, and the elastic workers used the free GPUs."),
        stage=ELASTIC,
        acts=tuple(DemoJob(name, _TEN, seconds=12, least=5) for name in ("first", "second")),
    ),
    Demonstration(
        name="elastic-same-queue",
        title=_("Preemption of an elastic job in its queue"),
        story=(
            _("A job with a minimum of five workers runs ten of them on all ten GPUs."),
            _("Then a second job is submitted to the same queue. Five elastic workers are evicted for it."),
            _(
                "No GPU is idle, and no job waits for another that has more than its minimum. Evicted workers "
                "run again later."
            ),
        ),
        watch=_("five evictions of the first job. Its other five workers continue, and the second job starts."),
        lesson=_("The first job lost only workers above its minimum, and ran them again later."),
        stage=ELASTIC,
        acts=(
            DemoJob("first", _TEN, seconds=14, least=5, evicted=5),
            DemoJob("second", _TEN, seconds=14, least=5, later=True),
        ),
        action="preempt",
    ),
    Demonstration(
        name="elastic-other-queue",
        title=_("Reclaim of borrowed resources from an elastic job"),
        story=(
            _("A job of one queue runs ten workers on ten GPUs. Five of the GPUs are borrowed from an empty queue."),
            _("Then a job is submitted to that other queue. It reclaims its share: five elastic workers are evicted."),
            _("A queue can lend what it does not use without losing it."),
        ),
        watch=_(
            "five evictions in the first queue. Five workers continue there, and the job of the other queue starts."
        ),
        lesson=_("The other queue reclaimed what it had lent, from workers above the minimum of the first job."),
        stage=ELASTIC,
        acts=(
            DemoJob("first", _TEN, seconds=14, least=5, evicted=5),
            DemoJob("second", _TEN, seconds=14, queue=1, least=5, later=True),
        ),
        action="reclaim",
    ),
)
