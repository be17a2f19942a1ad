"""The kind `kubernetes`: a cluster behind an API server, whose pods our engine or Volcano places."""

from hekla.backends.kind import BackendKind, deferred
from hekla.backends.kubernetes.config import KubernetesConfig

KIND = BackendKind(
    label="Kubernetes",
    config=KubernetesConfig,
    open=deferred("hekla.backends.kubernetes.opening:open_kubernetes"),
    check_health=deferred("hekla.backends.kubernetes.health:look"),
    durable_files=("kubernetes/*/logs/*/*", "kubeconfigs/*"),
)
