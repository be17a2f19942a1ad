"""The kind `simulated`: pods in simulated time."""

from hekla.backends.kind import BackendKind, deferred
from hekla.backends.simulated.config import SimulatedConfig
from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop

KIND = BackendKind(
    label="Simulated",
    config=SimulatedConfig,
    open=deferred("hekla.backends.simulated.backend:SimulatedBackend"),
    durable_files=("simulated/*/journal.jsonl",),
    supplies={
        Input.NODE_LABELS: gettext_noop("labels in the cluster's configuration"),
        Input.NODE_TAINTS: gettext_noop("taints in the cluster's configuration"),
        Input.NODE_ANNOTATIONS: gettext_noop("annotations in the cluster's configuration"),
        Input.DEVICES: gettext_noop("devices in the cluster's configuration"),
        Input.BUDGETS: gettext_noop("disruption budgets in the cluster's configuration"),
        Input.NODE_IMAGES: gettext_noop("images in the cluster's configuration"),
        Input.NODE_USAGE: gettext_noop("usage in the cluster's configuration"),
        Input.NUMA_CELLS: gettext_noop("NUMA cells in the cluster's configuration"),
    },
)
