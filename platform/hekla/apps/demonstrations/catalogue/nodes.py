"""Which nodes the pods of a job get."""

from django.utils.translation import gettext_lazy as _

from hekla.apps.demonstrations.scenes import DemoJob, Demonstration, Measure, Outcome, Topic, Without
from hekla.apps.demonstrations.stages import (
    COLOCATION,
    DATA,
    HOURS,
    IMAGES,
    PACKED,
    RACKS,
    SPEECH,
    SPREAD,
    TOGETHER,
)

_TALK = {"volcano.sh/task-topology-affinity": "ps,worker"}
_CLOSE = {"network_topology": {"mode": "soft"}}
_REVOCABLE = {
    "volcano.sh/preemptable": "true",
    "volcano.sh/revocable-zone": "*",
    "volcano.sh/jdb-max-unavailable": "100%",
}
_FOUR_CPUS = {"cpu": "4", "memory": "4Gi"}

DEMONSTRATIONS = (
    Demonstration(
        name="packed",
        topic=Topic.NODES,
        title=_("Small jobs packed to leave room for a large one"),
        story=(
            _("Three jobs of one GPU run on three nodes of four GPUs. Then a job needs four GPUs of one node."),
            _("The plugin binpack puts the small jobs on one node, so the large job starts at once on another."),
            _("Without it, each small job goes to the emptiest node, and no node is left whole."),
        ),
        watch=_("the nodes: three squares of one node fill, and the large job fills another node."),
        stage=PACKED,
        acts=(
            *(DemoJob(name, {"worker": 1}, seconds=14) for name in ("first", "second", "third")),
            DemoJob("large", {"worker": 1}, seconds=5, gpus=4, later=True),
        ),
        measure=Measure.ENDED,
        outcome=Outcome(0),
        without=Without("binpack", Outcome(3)),
    ),
    Demonstration(
        name="spread",
        topic=Topic.NODES,
        title=_("A service spread over all nodes"),
        story=(
            _("A service of four workers starts on four empty nodes of four GPUs."),
            _("The plugin nodeorder prefers nodes with much free room, so each worker gets a node of its own."),
            _("If a node fails, the service loses one of four workers. Without the plugin it loses all."),
        ),
        watch=_("the nodes: one square of each node fills."),
        stage=SPREAD,
        acts=(DemoJob("service", {"worker": 4}, seconds=8),),
        measure=Measure.NODES,
        outcome=Outcome(4),
        without=Without("nodeorder", Outcome(1)),
    ),
    Demonstration(
        name="together",
        topic=Topic.NODES,
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
        stage=TOGETHER,
        acts=tuple(
            DemoJob(name, {"ps": 2, "worker": 4}, seconds=15, annotations=_TALK)
            for name in ("first", "second", "third")
        ),
        measure=Measure.NODES,
        outcome=Outcome(1),
        without=Without("task-topology", Outcome(3)),
    ),
    Demonstration(
        name="racks",
        topic=Topic.NODES,
        title=_("Gangs that stay within a rack"),
        story=(
            _("Two jobs of eight workers run on four nodes of four GPUs, two nodes in each of two racks."),
            _("The jobs want to be as close together as possible in the network, so each job gets one rack."),
            _("Without this, the workers of both jobs are mixed, and real ones would use the slower network."),
        ),
        watch=_("the racks: all squares of a rack have the same number."),
        stage=RACKS,
        acts=tuple(DemoJob(name, {"worker": 8}, seconds=10, fields=_CLOSE) for name in ("first", "second")),
        measure=Measure.RACKS,
        outcome=Outcome(1),
        without=Without("network-topology-aware", Outcome(2)),
        inputs=_("Racks come from node labels that the cluster's topology_labels name, or from Volcano's HyperNodes."),
    ),
    Demonstration(
        name="data",
        topic=Topic.NODES,
        title=_("Jobs next to their data"),
        story=(
            _("One node caches the data set “images”, another one “speech”. Two jobs read one of them each."),
            _("The plugin data-locality prefers the nodes that cache the data of a job."),
            _("Without it, pods go to the emptiest nodes, and real ones would copy the data first."),
        ),
        watch=_("the nodes: each job fills the node that caches its data."),
        stage=DATA,
        acts=(
            DemoJob("vision", {"worker": 2}, seconds=8, annotations={"hekla.io/datasets": IMAGES}),
            DemoJob("speech", {"worker": 2}, seconds=8, annotations={"hekla.io/datasets": SPEECH}),
        ),
        measure=Measure.AT_DATA,
        outcome=Outcome(4),
        without=Without("data-locality", Outcome(0)),
        inputs=_(
            "Nodes name their data sets in the annotation hekla.io/cached-datasets. Hekla does not detect cached data."
        ),
    ),
    Demonstration(
        name="hours",
        topic=Topic.NODES,
        title=_("Nodes that are lent for some hours"),
        story=(
            _("One node belongs to the cluster. The other is lent during the hours of its zone (time division)."),
            _("Only the revocable job may use the lent node. The ordinary job gets the cluster's own node."),
            _(
                "When both run, the demonstration ends the hours of the zone. The plugin tdm evicts the revocable "
                "job. Later it runs again on the cluster's own node."
            ),
        ),
        watch=_("the zone: the first job fills it, is evicted, and later runs again on the other node."),
        stage=HOURS,
        acts=(
            DemoJob("revocable", {"worker": 4}, seconds=16, annotations=_REVOCABLE),
            DemoJob("ordinary", {"worker": 4}, seconds=14),
        ),
        measure=Measure.UNTIL_END,
        outcome=Outcome(0, evicted=(4, 0), action="shuffle"),
        without=Without("tdm", Outcome(4)),
        inputs=_("The label volcano.sh/revocable-zone of a node names its zone. The policy contains the hours."),
    ),
    Demonstration(
        name="colocation",
        topic=Topic.NODES,
        title=_("Offline work on unused CPUs of a service"),
        story=(
            _("A service requests all eight CPUs of a node, but uses half of them."),
            _("The plugin colocation lends the four unused CPUs to an offline job, which starts at once."),
            _("Without it, the offline job waits until the service ends."),
        ),
        watch=_("the squares: the service fills the size of the node, the offline job what is lent."),
        stage=COLOCATION,
        acts=(
            DemoJob("service", {"server": 2}, seconds=10, resources=_FOUR_CPUS),
            DemoJob(
                "offline",
                {"worker": 1},
                seconds=6,
                resources=_FOUR_CPUS,
                annotations={"volcano.sh/qos-level": "BE"},
            ),
        ),
        measure=Measure.ENDED,
        outcome=Outcome(0),
        without=Without("colocation", Outcome(1)),
        inputs=_(
            "The annotation volcano.sh/oversubscription-cpu of a node says how much is unused. Here it is fixed; "
            "Volcano's node agent writes what it measures."
        ),
    ),
)
