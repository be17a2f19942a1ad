"""The inputs of scheduling: facts that plugins read beside the sizes of nodes, queues and pods.

The engine's plugins declare which inputs they need. Backends and the snapshot declare which ones they supply. Both use
the names here; REST answers contain them.
"""

from collections.abc import Mapping
from enum import StrEnum

from hekla.domain.translation import gettext_noop, translate


class Input(StrEnum):
    """A kind of facts that a plugin may need."""

    NODE_LABELS = "node_labels"
    NODE_TAINTS = "node_taints"
    NODE_ANNOTATIONS = "node_annotations"
    NODE_IMAGES = "node_images"
    NODE_USAGE = "node_usage"
    NUMA_CELLS = "numa_cells"
    HYPERNODES = "hypernodes"
    STORAGE = "storage"
    DEVICES = "devices"
    POD_LABELS = "pod_labels"
    POD_ANNOTATIONS = "pod_annotations"
    POD_LIMITS = "pod_limits"
    POD_IMAGES = "pod_images"
    POD_CARDS = "pod_cards"
    TOLERATIONS = "tolerations"
    AFFINITY = "affinity"
    HOST_PORTS = "host_ports"
    PLACEMENT_TIMES = "placement_times"
    PRIORITY_CLASSES = "priority_classes"
    JOB_ANNOTATIONS = "job_annotations"
    JOB_TOPOLOGY = "job_topology"
    SUB_GROUPS = "sub_groups"
    QUEUE_ANNOTATIONS = "queue_annotations"
    QUEUE_NODE_GROUPS = "queue_node_groups"
    BUDGETS = "disruption_budgets"
    RESOURCE_QUOTAS = "resource_quotas"
    SHUFFLE_TIME = "shuffle_time"
    EXTENDER_CALLS = "extender_calls"

    @property
    def label(self) -> str:
        """Its name for people, in the middle of a sentence."""
        return translate(_LABELS[self])


_LABELS: Mapping[Input, str] = {
    Input.NODE_LABELS: gettext_noop("labels of nodes"),
    Input.NODE_TAINTS: gettext_noop("taints of nodes"),
    Input.NODE_ANNOTATIONS: gettext_noop("annotations of nodes"),
    Input.NODE_IMAGES: gettext_noop("images on nodes"),
    Input.NODE_USAGE: gettext_noop("measured usage of nodes"),
    Input.NUMA_CELLS: gettext_noop("NUMA cells of nodes"),
    Input.HYPERNODES: gettext_noop("hypernodes"),
    Input.STORAGE: gettext_noop("persistent volumes and claims"),
    Input.DEVICES: gettext_noop("devices and device claims"),
    Input.POD_LABELS: gettext_noop("labels of pods"),
    Input.POD_ANNOTATIONS: gettext_noop("annotations of pods"),
    Input.POD_LIMITS: gettext_noop("resource limits of pods"),
    Input.POD_IMAGES: gettext_noop("images of pods"),
    Input.POD_CARDS: gettext_noop("cards of running pods"),
    Input.TOLERATIONS: gettext_noop("tolerations of pods"),
    Input.AFFINITY: gettext_noop("affinity and topology spread of pods"),
    Input.HOST_PORTS: gettext_noop("host ports of pods"),
    Input.PLACEMENT_TIMES: gettext_noop("times when pods were placed"),
    Input.PRIORITY_CLASSES: gettext_noop("priority classes of pods"),
    Input.JOB_ANNOTATIONS: gettext_noop("annotations of jobs"),
    Input.JOB_TOPOLOGY: gettext_noop("network topology of jobs"),
    Input.SUB_GROUPS: gettext_noop("sub-groups of jobs"),
    Input.QUEUE_ANNOTATIONS: gettext_noop("annotations of queues"),
    Input.QUEUE_NODE_GROUPS: gettext_noop("node groups of queues"),
    Input.BUDGETS: gettext_noop("disruption budgets"),
    Input.RESOURCE_QUOTAS: gettext_noop("resource quotas of namespaces"),
    Input.SHUFFLE_TIME: gettext_noop("time of the last shuffle"),
    Input.EXTENDER_CALLS: gettext_noop("calls to other programs"),
}
