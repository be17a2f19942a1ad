"""The demonstrations there are, as data: their jobs, what they show, and how they end when nobody disturbs them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from hekla.apps.demonstrations.stages import ELASTIC, GANGS, GPU, SPEED, TOGETHER, Stage
from hekla.domain.errors import NotFound
from hekla.domain.jobspec import JobSpec

PAUSE_SECONDS = 4
"""How long a job has all its pods running before a job that comes later is submitted."""

Words = str | Promise


@dataclass(frozen=True, slots=True)
class DemoJob:
    """One job. `least`: pods without which it does not begin; `later`: it comes when the one before runs whole.

    `evicted`: how many of its pods have to make room, and `action`: by what.
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
        """The job as it is submitted under this name."""
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
    """One of them. `story`: what will happen and why it matters; `watch`: where to look; `lesson`: what it showed.

    Without anybody's disturbance its jobs complete with the evictions of the acts, by `action`; `one_by_one`: no job
    begins before the one before is over; `one_node`: all pods of a job are on one node.
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
    """The demonstration of that name. Raises NotFound."""
    found = next((one for one in DEMONSTRATIONS if one.name == name), None)
    if found is None:
        raise NotFound("There is no such demonstration.")
    return found


_TALK = {"volcano.sh/task-topology-affinity": "ps,worker"}
_NET = {"ps": 2, "worker": 4}
_TEN = {"worker": 10}

DEMONSTRATIONS = (
    Demonstration(
        name="gangs",
        title=_("Two gangs, and room for one"),
        story=(
            _("Two jobs of four workers come at once. Each worker needs a GPU, and the simulated machines have four."),
            _("One job gets all four and runs; the other holds none, waits, and runs when the first is over."),
            _("Placed pod by pod, each job could get two GPUs. Then both would wait for the rest for ever."),
        ),
        watch=_("the squares: those of one job fill together while all of the other stay hollow. Then they change."),
        lesson=_("One job ran whole while the other waited whole. No GPU was held by a job that could not begin."),
        stage=GANGS,
        acts=(DemoJob("first", {"worker": 4}, seconds=10), DemoJob("second", {"worker": 4}, seconds=10)),
        one_by_one=True,
    ),
    Demonstration(
        name="together",
        title=_("Parameter servers beside their workers"),
        story=(
            _("Three jobs of two parameter servers and four workers come at once, to three machines of six GPUs."),
            _("The jobs say that their servers and workers talk to each other. So each job is put on one machine."),
            _("Without that its pods are put wherever there is room, and talk to each other through the network."),
        ),
        watch=_("the nodes of each job: one machine, with all six of its pods."),
        lesson=_("Each job had one machine to itself; no server was apart from its workers."),
        stage=TOGETHER,
        acts=tuple(DemoJob(name, _NET, seconds=15, annotations=_TALK) for name in ("first", "second", "third")),
        one_node=True,
    ),
    Demonstration(
        name="elastic-at-once",
        title=_("Two elastic jobs at once"),
        story=(
            _("There are ten GPUs. Two jobs come at once to one queue; each needs five workers and can use ten."),
            _("Each gets the five that it needs to begin; no job takes ten while the other waits."),
            _("The elastic workers, those beyond the five, run as soon as GPUs are free again."),
        ),
        watch=_("five and five squares fill, then the other five of each. Nothing is evicted."),
        lesson=_("Both jobs began at once with their minimum, and the elastic workers took the room that was left."),
        stage=ELASTIC,
        acts=tuple(DemoJob(name, _TEN, seconds=12, least=5) for name in ("first", "second")),
    ),
    Demonstration(
        name="elastic-same-queue",
        title=_("An elastic job makes room in its own queue"),
        story=(
            _("A job that needs five workers runs with all ten that it can use, on all ten GPUs."),
            _("Then a second job comes to the same queue. So that it can begin, five elastic workers must end."),
            _("So no GPU is idle, and nobody waits for a job that has more than it needs. The evicted come back."),
        ),
        watch=_("five evictions of the first job, while its other five workers go on and the second job begins."),
        lesson=_("The first job gave up what was beyond its minimum and no more, and ran those workers again later."),
        stage=ELASTIC,
        acts=(
            DemoJob("first", _TEN, seconds=14, least=5, evicted=5),
            DemoJob("second", _TEN, seconds=14, least=5, later=True),
        ),
        action="preempt",
    ),
    Demonstration(
        name="elastic-other-queue",
        title=_("An elastic job gives back what another queue lent"),
        story=(
            _("A job of one queue runs with ten workers on ten GPUs. Five of them are lent by a queue that is empty."),
            _("Then a job comes to that other queue, which gets its share back: five elastic workers must end."),
            _("So a queue can lend what it does not use without losing it."),
        ),
        watch=_("five evictions in the first queue, while five workers go on there and the job of the other begins."),
        lesson=_(
            "The other queue got back what it had lent, from workers that the first job could do without for a while."
        ),
        stage=ELASTIC,
        acts=(
            DemoJob("first", _TEN, seconds=14, least=5, evicted=5),
            DemoJob("second", _TEN, seconds=14, queue=1, least=5, later=True),
        ),
        action="reclaim",
    ),
)
