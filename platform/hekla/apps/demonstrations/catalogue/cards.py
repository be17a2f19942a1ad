"""Which cards and CPUs of a node a pod gets."""

from django.utils.translation import gettext_lazy as _

from hekla.apps.demonstrations.scenes import DemoJob, Demonstration, Measure, Outcome, Topic, Without
from hekla.apps.demonstrations.stages import LINKS, NUMA, SHARING
from hekla.domain.cards import MEMORY, NUMBER

_SIX_GIB = 6 * 1024

DEMONSTRATIONS = (
    Demonstration(
        name="numa",
        topic=Topic.CARDS,
        title=_("Pods within a NUMA cell"),
        story=(
            _("Two nodes have 16 CPUs each: one in four NUMA cells, the other in two. A pod needs eight CPUs."),
            _("The plugin numa-aware prefers nodes where the CPUs of a pod are in one cell, close to its memory."),
            _("Without it, one of the two pods gets CPUs of two cells, and a real one would be slower."),
        ),
        watch=_("the cells: each pod fills one cell of the second node."),
        stage=NUMA,
        acts=(
            DemoJob(
                "pinned",
                {"worker": 2},
                seconds=8,
                resources={"cpu": "8", "memory": "8Gi"},
                task_fields={"topology_policy": "best-effort"},
            ),
        ),
        measure=Measure.CELLS,
        outcome=Outcome(1),
        without=Without("numa-aware", Outcome(2)),
        inputs=_("On Kubernetes, cells come from Volcano's Numatopology objects."),
    ),
    Demonstration(
        name="links",
        topic=Topic.CARDS,
        title=_("Cards with fast links"),
        story=(
            _("A node has four cards. Cards 0 and 2 have a fast link, and so have 1 and 3. Two jobs need two each."),
            _("The plugin deviceshare chooses the cards of a job by the weakest link between them."),
            _("Without it, each job gets the first free cards, and real ones would communicate over a slow link."),
        ),
        watch=_("the groups of cards: each job fills one group."),
        stage=LINKS,
        acts=tuple(
            DemoJob(name, {"worker": 1}, seconds=8, resources={"cpu": "4", NUMBER: "2"}) for name in ("first", "second")
        ),
        measure=Measure.LINKED,
        outcome=Outcome(2),
        without=Without("deviceshare", Outcome(0)),
        inputs=_(
            "The annotation hekla.io/gpu-links of a node contains the strength of its links. A local cluster measures "
            "the links of its NVIDIA GPUs. On other clusters, write the annotation yourself."
        ),
    ),
    Demonstration(
        name="sharing",
        topic=Topic.CARDS,
        title=_("Jobs that share a card"),
        story=(
            _("Two cards have 16 GiB of memory each. Five jobs request 6 GiB of a card each."),
            _("The plugin deviceshare lets two jobs share a card. The fifth waits: 4 GiB are free on each card."),
            _("Without it, only the sum counts. The fifth job gets a card without room, and a real one would fail."),
        ),
        watch=_("the cards: two jobs on each, and room that is too small for the fifth."),
        stage=SHARING,
        acts=tuple(
            DemoJob(name, {"worker": 1}, seconds=8, resources={"cpu": "2", MEMORY: str(_SIX_GIB)})
            for name in ("first", "second", "third", "fourth", "fifth")
        ),
        measure=Measure.CARD_MEMORY,
        outcome=Outcome(12),
        without=Without("deviceshare", Outcome(18)),
    ),
)
