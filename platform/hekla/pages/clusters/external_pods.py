"""The external pods that a cluster's configuration lets Hekla schedule, and problems of that configuration."""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from hekla.apps.clusters.models import Cluster
from hekla.apps.external_pods import services
from hekla.backends.kubernetes.config import ExternalPodsSettings
from hekla.domain.errors import Refused
from hekla.domain.external_pods import ExternalPodRules


@dataclass(frozen=True, slots=True)
class NamespaceRow:
    """A namespace, and the tenant of its pods. `problem`: why they are not scheduled; empty if they are."""

    namespace: str
    tenant: str
    problem: str


@dataclass(frozen=True, slots=True)
class ExternalPodsView:
    """The external pods of a cluster, as a page shows them."""

    scheduler_name: str
    queue: str
    owner: str
    rows: tuple[NamespaceRow, ...]


def of(cluster: Cluster) -> ExternalPodsView | None:
    """The external pods of a cluster, or None if Hekla schedules none there or their configuration is invalid."""
    if cluster.kind != Cluster.Kind.KUBERNETES or cluster.leads_jobs or not cluster.config.get("external_pods"):
        return None
    try:
        config = ExternalPodsSettings.model_validate(cluster.config["external_pods"])
    except ValidationError:  # the backend refuses such a configuration, and the cluster's health says so
        return None
    return ExternalPodsView(config.scheduler_name, config.queue, config.owner, tuple(_rows(cluster, config)))


def _rows(cluster: Cluster, config: ExternalPodsSettings) -> Iterator[NamespaceRow]:
    rules = ExternalPodRules(config.namespaces, config.queue, config.owner)
    for namespace, tenant in sorted(config.namespaces.items()):
        yield NamespaceRow(namespace, tenant, _problem(cluster, rules, namespace))


def _problem(cluster: Cluster, rules: ExternalPodRules, namespace: str) -> str:
    try:
        services.find_owner(cluster, rules, namespace, rules.queue)
    except Refused as refusal:
        return str(refusal)
    return ""
