"""All demonstrations as data: their jobs, their texts, and the outcome when nothing disturbs them."""

from django.utils.translation import gettext_lazy as _

from hekla.apps.demonstrations.scenes import Announcement, DemoJob, Demonstration, Outcome, Without
from hekla.apps.demonstrations.stages import ELASTIC, GANGS, PACKED, RACKS, TOGETHER
from hekla.domain.errors import NotFound


def get(name: str) -> Demonstration:
    """The demonstration with this name. Raises NotFound."""
    found = next((one for one in DEMONSTRATIONS if one.name == name), None)
    if found is None:
        raise NotFound(str(_("Unknown demonstration.")))
    return found


_TALK = {"volcano.sh/task-topology-affinity": "ps,worker"}
_NET = {"ps": 2, "worker": 4}
_TEN = {"worker": 10}
_CLOSE = {"network_topology": {"mode": "soft"}}

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
        outcome=Outcome(frozenset({Announcement.ONE_BY_ONE})),
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
        outcome=Outcome(frozenset({Announcement.ONE_NODE})),
        without=Without(
            "task-topology",
            _("Without the plugin, the pods of a job were on several nodes."),
            Outcome(frozenset({Announcement.SEVERAL_NODES})),
        ),
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
            DemoJob("first", _TEN, seconds=14, least=5),
            DemoJob("second", _TEN, seconds=14, least=5, later=True),
        ),
        outcome=Outcome(evicted=(5, 0), action="preempt"),
        without=Without(
            "preempt",
            _("Without the action, no pod was evicted, and the second job waited until the first had ended."),
            Outcome(frozenset({Announcement.ONE_BY_ONE})),
        ),
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
            DemoJob("first", _TEN, seconds=14, least=5),
            DemoJob("second", _TEN, seconds=14, queue=1, least=5, later=True),
        ),
        outcome=Outcome(evicted=(5, 0), action="reclaim"),
        without=Without(
            "reclaim",
            _("Without the action, the other queue waited for its own share until the first job had ended."),
            Outcome(frozenset({Announcement.ONE_BY_ONE})),
        ),
    ),
    Demonstration(
        name="packed",
        title=_("Small jobs packed to leave room for a large one"),
        story=(
            _("Three jobs of one GPU run on three nodes of four GPUs. Then a job needs four GPUs of one node."),
            _("The plugin binpack puts the small jobs on one node, so the large job starts at once on another."),
            _("Without it, each small job goes to the emptiest node, and no node is left whole."),
        ),
        watch=_("the nodes: three squares of one node fill, and the large job fills another node."),
        lesson=_("A node was left whole: the large job started while the small ones ran."),
        stage=PACKED,
        acts=(
            *(DemoJob(name, {"worker": 1}, seconds=14) for name in ("first", "second", "third")),
            DemoJob("large", {"worker": 1}, seconds=5, gpus=4, later=True),
        ),
        outcome=Outcome(frozenset({Announcement.LAST_AT_ONCE})),
        without=Without(
            "binpack",
            _("Without the plugin, no node was left whole. The large job waited until a small one had ended."),
            Outcome(frozenset({Announcement.LAST_WAITED})),
        ),
    ),
    Demonstration(
        name="racks",
        title=_("Gangs that stay within a rack"),
        story=(
            _("Two jobs of eight workers run on four nodes of four GPUs, two nodes in each of two racks."),
            _("The jobs want to be as close together as possible in the network, so each job gets one rack."),
            _("Without this, the workers of both jobs are mixed, and real ones would use the slower network."),
        ),
        watch=_("the racks: all squares of a rack have the same number."),
        lesson=_("Each job had its own rack: all of its workers were close together."),
        stage=RACKS,
        acts=tuple(DemoJob(name, {"worker": 8}, seconds=10, fields=_CLOSE) for name in ("first", "second")),
        outcome=Outcome(frozenset({Announcement.ONE_RACK})),
        without=Without(
            "network-topology-aware",
            _("Without the plugin, the workers of each job were in both racks."),
            Outcome(frozenset({Announcement.SEVERAL_RACKS})),
        ),
    ),
)
