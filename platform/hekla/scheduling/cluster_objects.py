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
Objects = Mapping[ObjectKind, Mapping[str, Object]]
"""By kind, and by name in alphabetical order."""
Digests = Mapping[tuple[str, str], str]
"""By kind and name."""
Parsed = TypeVar("Parsed")


@dataclass
class ObjectDigests:
    """The digests of all objects of one cluster, read once for all caches of objects."""

    _digests: Digests | None = None

    def invalidate(self) -> None:
        """Read them again at the next call."""
        self._digests = None

    def read(self, cluster: Cluster) -> Digests:
        """The digests; the very same object as before unless they were read again."""
        if self._digests is None:
            self._digests = clusters.object_digests(cluster)
        return self._digests


@dataclass
class ObjectCache(Generic[Parsed]):
    """The parsed objects of one cluster, of these kinds. The very same result as before as long as nothing changes.

    `parsed`: the result; at first, of no objects.
    """

    kinds: Collection[ObjectKind]
    parse: Callable[[Objects], Parsed]
    parsed: Parsed
    _all: Digests = field(default_factory=dict)
    """The digests of all objects at the last update."""
    _digests: Digests = field(default_factory=dict)
    _bodies: Mapping[str, Object] = field(default_factory=dict)

    def update(self, cluster: Cluster, digests: Digests) -> bool:
        """Update from the database, of which only new bodies are read. Returns whether objects changed."""
        if digests is self._all:
            return False
        self._all, own = digests, {key: digest for key, digest in digests.items() if key[0] in self.kinds}
        if own == self._digests:
            return False
        wanted = set(own.values())
        known = {digest: body for digest, body in self._bodies.items() if digest in wanted}
        missing = wanted - known.keys()
        self._bodies = known | (clusters.object_bodies(cluster, missing) if missing else {})
        self._digests = own
        self.parsed = self.parse(self._objects())
        return True

    def _objects(self) -> Objects:
        # A body may be missing if it has just changed; the next event brings it.
        found: dict[ObjectKind, dict[str, Object]] = {kind: {} for kind in self.kinds}
        for (kind, name), digest in sorted(self._digests.items()):
            if digest in self._bodies:
                found[ObjectKind(kind)][name] = self._bodies[digest]
        return found


def in_lists(objects: Objects, lists: Mapping[ObjectKind, str]) -> dict[str, list[Object]]:
    """The objects in these lists: the name of one for each kind."""
    found: dict[str, list[Object]] = {name: [] for name in lists.values()}
    for kind, by_name in objects.items():
        found[lists[kind]].extend(by_name.values())
    return found


def claim_namespace(job: Job) -> str:
    """The namespace of the claims of a job, as the engine names them."""
    if job.is_external:
        return external_pods.object_scope(job)
    return job.tenant.slug if job.cluster.separates_tenants else ""
