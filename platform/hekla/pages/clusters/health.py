"""The health of a cluster, in words that its operator can act on."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hekla.apps.clusters.models import Cluster, ClusterHealth
from hekla.backends.base import Health
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.cluster_access.health import describe_topology_fault, describe_trouble


@dataclass(frozen=True, slots=True)
class MissingRights:
    """Missing permissions on one resource. `everywhere`: cluster-wide, else only in `namespace`."""

    resource: str
    verbs: str
    everywhere: bool
    namespace: str


@dataclass(frozen=True, slots=True)
class HealthView:
    """The health of a cluster, as a page shows it. `sentence` and `detail`: why it is unreachable, in Hekla's words and
    as reported; `sentence` is empty if the cluster is reachable. `topology_faults`: by HyperNode object,
    what is wrong with it. `metrics_fault`: why the configured Prometheus does not answer.
    """

    namespace: str
    sentence: str
    detail: str
    version: str
    has_namespace: bool | None
    missing: tuple[MissingRights, ...]
    kubelets: tuple[tuple[str, int], ...]
    topology_faults: tuple[tuple[str, str], ...] = ()
    metrics_fault: str = ""
    since: datetime | None = None
    checked_at: datetime | None = None

    @property
    def is_reachable(self) -> bool:
        return not self.sentence

    @property
    def is_whole(self) -> bool:
        return self.is_reachable and not (self.missing or self.metrics_fault) and self.has_namespace is not False

    @property
    def machines(self) -> int:
        return sum(count for _version, count in self.kubelets)


def of_answer(found: Health, config: Mapping[str, Any]) -> HealthView:
    """The view of a health check that ran now."""
    return _health_view(found, config)


def of_row(cluster: Cluster, health: ClusterHealth | None) -> HealthView | None:
    """The view of the last stored health check, or None if there was none."""
    return _health_view(health, cluster.config, since=health.since, checked_at=health.checked_at) if health else None


def _health_view(found: Health | ClusterHealth, config: Mapping[str, Any], **times: datetime) -> HealthView:
    namespace = str(config.get("namespace") or KubernetesConfig().namespace)
    return HealthView(
        namespace=namespace,
        sentence=describe_trouble(found.problem or ""),
        detail=found.detail,
        version=found.version,
        has_namespace=found.has_namespace,
        missing=tuple(_grouped(found.missing, namespace)),
        kubelets=tuple(sorted(found.kubelets.items())),
        topology_faults=tuple(_described(found.topology_faults)),
        metrics_fault=found.metrics_fault,
        **times,
    )


def _described(faults: Iterable[str]) -> Iterable[tuple[str, str]]:
    for fault in faults:
        problem, _, name = fault.partition(" ")
        yield name, describe_topology_fault(problem)


def _grouped(missing: Iterable[str], ours: str) -> Iterable[MissingRights]:
    verbs: dict[tuple[str, str], list[str]] = defaultdict(list)
    for right in missing:
        verb, resource, *where = right.split()
        verbs[resource, where[0] if where else ours].append(verb)
    for (resource, place), found in verbs.items():
        yield MissingRights(resource, ", ".join(found), place == "*", place)
