"""The kind `kubernetes`: a Kubernetes cluster, whose pods Hekla's engine or Volcano places."""

from hekla.backends.kind import BackendKind, deferred
from hekla.backends.kubernetes.config import KubernetesConfig

KIND = BackendKind(
    label="Kubernetes",
    config=KubernetesConfig,
    open=deferred("hekla.backends.kubernetes.opening:open_kubernetes"),
    check_health=deferred("hekla.backends.kubernetes.health:look"),
    durable_files=("kubernetes/*/logs/*/*", "kubeconfigs/*"),
)
