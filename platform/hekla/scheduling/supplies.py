"""The inputs of scheduling that a cluster supplies, and where each comes from.

Some come from Hekla's own rows, whatever the cluster. The others come from the backend, and count only if the snapshot
passes them on. Whoever adds a fact to `snapshot` or to a backend declares it here, or in the backend's `kind`.
"""

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.queues import selectors as queues
from hekla.backends.registry import kinds
from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import translate
from hekla.engine.policy import SchedulerPolicy
from hekla.lib import clock
from hekla.scheduling import extenders
from hekla.scheduling.topology import topology_labels

FROM_ROWS: Mapping[Input, Promise] = {
    Input.JOB_ANNOTATIONS: gettext_lazy("annotations of the job"),
    Input.POD_ANNOTATIONS: gettext_lazy("annotations of the job"),
    Input.POD_LABELS: gettext_lazy("labels of the task"),
    Input.POD_LIMITS: gettext_lazy("resources of the task"),
    Input.POD_IMAGES: gettext_lazy("image of the task"),
    Input.TOLERATIONS: gettext_lazy("tolerations of the task"),
    Input.AFFINITY: gettext_lazy("affinity and topology spread of the task"),
    Input.HOST_PORTS: gettext_lazy("host ports of the task"),
    Input.PRIORITY_CLASSES: gettext_lazy("priority class of the job"),
    Input.QUEUE_ANNOTATIONS: gettext_lazy("settings of the queue"),
    Input.QUEUE_NODE_GROUPS: gettext_lazy("settings of the queue"),
    Input.JOB_TOPOLOGY: gettext_lazy("network topology of the job"),
    Input.SUB_GROUPS: gettext_lazy("partitions of the task"),
    Input.PLACEMENT_TIMES: gettext_lazy("Hekla's own records"),
    Input.SHUFFLE_TIME: gettext_lazy("Hekla's own records"),
    Input.POD_CARDS: gettext_lazy("Hekla's own records"),
}
"""What the snapshot takes from rows that people or the controller write; the source as a phrase."""
FROM_BACKENDS = frozenset(
    {
        Input.NODE_LABELS,
        Input.NODE_TAINTS,
        Input.NODE_ANNOTATIONS,
        Input.NODE_IMAGES,
        Input.NODE_USAGE,
        Input.HYPERNODES,
        Input.NUMA_CELLS,
        Input.DEVICES,
        Input.STORAGE,
        Input.BUDGETS,
    }
)
"""What the snapshot passes on from the reports of backends."""
FROM_EXTENDERS = gettext_lazy("HEKLA_EXTENDERS; predictions assume that it agrees")
"""Where calls to the extenders of a policy come from, if all of them are allowed."""


def supplied(cluster: Cluster, policy: SchedulerPolicy) -> Mapping[Input, str]:
    """What this cluster supplies to this policy: the source as a phrase for people, by input."""
    kind = kinds().get(cluster.kind)
    reported = {
        one: translate(source) for one, source in (kind.supplies if kind else {}).items() if one in FROM_BACKENDS
    }
    rows = {one: str(source) for one, source in FROM_ROWS.items()}
    if not queues.has_node_groups(cluster):
        del rows[Input.QUEUE_NODE_GROUPS]  # with none at all, a plugin that needs them lets no job start
    if extenders.are_allowed(policy):
        rows[Input.EXTENDER_CALLS] = str(FROM_EXTENDERS)
    if labels := topology_labels(cluster.config):
        reported[Input.HYPERNODES] = _("topology_labels of the cluster: %s") % ", ".join(labels)
    elif Input.HYPERNODES in reported and not clusters.has_hypernodes(cluster):
        del reported[Input.HYPERNODES]
    for one, setting in ((Input.DEVICES, "devices"), (Input.STORAGE, "storage")):
        if not cluster.config.get(setting):
            reported.pop(one, None)
    if Input.NUMA_CELLS in reported and not clusters.has_numa_cells(cluster):
        del reported[Input.NUMA_CELLS]
    if Input.NODE_USAGE in reported and not clusters.has_usage(cluster, now=clock.now()):
        del reported[Input.NODE_USAGE]
    return rows | reported
