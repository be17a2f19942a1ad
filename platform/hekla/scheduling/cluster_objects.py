"""Reads the objects of some kinds that a cluster reports, as the engine's input."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs.models import Job
from hekla.domain.cluster_objects import ObjectKind
from hekla.scheduling import external_pods

Object = Mapping[str, Any]
Parsed = TypeVar("Parsed")


@dataclass
class ObjectCache(Generic[Parsed]):
    """The parsed objects of one cluster. The very same result as before as long as nothing changes.

    `lists`: the name of the list for each kind. `parse`: parses the lists by name. `parsed`: the result; at first, of
    no objects.
    """

    lists: Mapping[ObjectKind, str]
    parse: Callable[[Mapping[str, Collection[Object]]], Parsed]
    parsed: Parsed
    _digests: Mapping[tuple[str, str], str] = field(default_factory=dict)
    _bodies: Mapping[str, Object] = field(default_factory=dict)

    def read(self, cluster: Cluster) -> None:
        """Update from the database, of which only new bodies are read."""
        digests = {key: digest for key, digest in clusters.object_digests(cluster).items() if key[0] in self.lists}
        if digests == self._digests:
            return
        wanted = set(digests.values())
        known = {digest: body for digest, body in self._bodies.items() if digest in wanted}
        missing = wanted - known.keys()
        self._bodies = known | (clusters.object_bodies(cluster, missing) if missing else {})
        self._digests = digests
        self.parsed = self.parse(self._by_list())

    def _by_list(self) -> Mapping[str, Collection[Object]]:
        # A body may be missing if it has just changed; the next event brings it.
        found: dict[str, list[Object]] = {name: [] for name in self.lists.values()}
        for (kind, _name), digest in sorted(self._digests.items()):
            if digest in self._bodies:
                found[self.lists[ObjectKind(kind)]].append(self._bodies[digest])
        return found


def claim_namespace(job: Job) -> str:
    """The namespace of the claims of a job, as the engine names them."""
    if job.is_external:
        return external_pods.object_scope(job)
    return job.tenant.slug if job.cluster.separates_tenants else ""
