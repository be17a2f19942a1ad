"""Choose the backend of a Kubernetes cluster by its scheduler: Hekla or Volcano."""

from hekla.backends.kind import BackendContext
from hekla.backends.kubernetes.backend import KubernetesBackend
from hekla.backends.kubernetes.cluster import KubernetesCluster
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.volcano import VolcanoBackend


def open_kubernetes(config: KubernetesConfig, context: BackendContext) -> KubernetesCluster:
    """Open the backend of this cluster."""
    kind = VolcanoBackend if config.scheduler == "volcano" else KubernetesBackend
    return kind(config, context)
