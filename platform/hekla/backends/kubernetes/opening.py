"""Which of the two backends a Kubernetes cluster has: by who places its pods."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hekla.backends import config as configuration
from hekla.backends.kubernetes.backend import KubernetesBackend
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.volcano import VolcanoBackend
from hekla.lib.clock import Clock


def open_kubernetes(
    *, cluster: str, config: Mapping[str, Any], home: Path, clock: Clock, key: str | None = None
) -> KubernetesBackend:
    """The backend of this cluster. Raises Invalid for a wrong configuration."""
    kind = VolcanoBackend if configuration.read(KubernetesConfig, config).scheduler == "volcano" else KubernetesBackend
    return kind(cluster=cluster, config=config, home=home, clock=clock, key=key)
