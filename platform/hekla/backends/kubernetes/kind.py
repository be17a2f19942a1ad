"""The kind `kubernetes`: a Kubernetes cluster, whose pods Hekla's engine or Volcano places."""

from hekla.backends.kind import BackendKind, deferred
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop

KIND = BackendKind(
    label="Kubernetes",
    config=KubernetesConfig,
    open=deferred("hekla.backends.kubernetes.opening:open_kubernetes"),
    check_health=deferred("hekla.backends.kubernetes.health:look"),
    durable_files=("kubernetes/*/logs/*/*", "kubeconfigs/*"),
    supplies={
        Input.NODE_LABELS: gettext_noop("labels of the cluster's nodes"),
        Input.NODE_TAINTS: gettext_noop("taints of the cluster's nodes"),
        Input.NODE_ANNOTATIONS: gettext_noop("annotations of the cluster's nodes"),
        Input.NODE_IMAGES: gettext_noop("images that the nodes report"),
        Input.NODE_USAGE: gettext_noop("the cluster's metrics API (metrics.k8s.io), or Prometheus if configured"),
        Input.NUMA_CELLS: gettext_noop("Numatopology objects of the cluster"),
        Input.DEVICES: gettext_noop("ResourceSlices, DeviceClasses and ResourceClaims of the cluster"),
        Input.STORAGE: gettext_noop("PersistentVolumes, claims, StorageClasses and CSI objects of the cluster"),
        Input.BUDGETS: gettext_noop("PodDisruptionBudgets of the cluster"),
        Input.HYPERNODES: gettext_noop("HyperNode objects of the cluster"),
    },
)
