"""Devices of a cluster and claims to them, as the engine's input, from the objects that its backend reports.

A claim from a template exists only once its pod does, which is after the engine has chosen a node. Until then the
engine gets the claim that the template would make.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.backends.base import PodKey
from hekla.domain.cluster_objects import DEVICE_KINDS, ObjectKind, claim_name, template_name
from hekla.engine import device_objects
from hekla.engine.devices import DeviceClaim, Devices
from hekla.scheduling import external_pods

Object = Mapping[str, Any]
_CLAIM = ObjectKind.RESOURCE_CLAIM
NO_DEVICES = Devices()


@dataclass
class DeviceCache:
    """The devices and claims of one cluster. The very same objects as before as long as nothing changes."""

    reported: Devices = NO_DEVICES
    """All that the backend reports, with templates as claims."""
    _digests: Mapping[tuple[str, str], str] = field(default_factory=dict)
    _bodies: Mapping[str, Object] = field(default_factory=dict)

    def read(self, cluster: Cluster) -> None:
        """Update from the database, of which only new bodies are read."""
        kinds = frozenset(map(str, DEVICE_KINDS))
        digests = {key: digest for key, digest in clusters.object_digests(cluster).items() if key[0] in kinds}
        if digests == self._digests:
            return
        wanted = set(digests.values())
        known = {digest: body for digest, body in self._bodies.items() if digest in wanted}
        missing = wanted - known.keys()
        self._bodies = known | (clusters.object_bodies(cluster, missing) if missing else {})
        self._digests = digests
        self.reported = self._parse()

    def _parse(self) -> Devices:
        # A body may be missing if it has just changed; the next event brings it.
        found: dict[str, list[Object]] = {field: [] for field in device_objects.LISTS.values()}
        for (kind, _name), digest in sorted(self._digests.items()):
            if digest in self._bodies:
                found[device_objects.LISTS.get(ObjectKind(kind), device_objects.LISTS[_CLAIM])].append(
                    self._bodies[digest]
                )
        return device_objects.devices(found)


def named_claims(job: Job, task: str) -> tuple[str, ...]:
    """The existing claims that the pods of a task share, as the engine names them."""
    claims = spec_of(job).task(task).resource_claims
    namespace = _namespace(job) if claims else ""
    return tuple(f"{namespace}/{one.resource_claim_name}" for one in claims if one.resource_claim_name)


def own_claims(job: Job, pod: Pod) -> Iterator[tuple[str, str]]:
    """The claims that a pod gets from templates, as the engine names them, each with that of its template."""
    for one in spec_of(job).task(pod.task).resource_claims:
        if one.resource_claim_template_name:
            key = PodKey(job.uid.hex, pod.task, pod.index, pod.attempt)
            name = pod.external.name if job.is_external else key.name
            namespace = _namespace(job)
            yield claim_name(namespace, name, one.name), template_name(namespace, one.resource_claim_template_name)


def with_own_claims(reported: Devices, jobs: Iterable[tuple[Job, Iterable[Pod]]]) -> Devices:
    """The devices with the claims that these jobs' pods get from templates."""
    made: dict[str, DeviceClaim] = {}
    for job, pods in jobs:
        for pod in pods:
            for name, template in own_claims(job, pod):
                if name not in reported.claims and template in reported.claims:
                    made[name] = reported.claims[template]
    return Devices(reported.devices, {**reported.claims, **made}) if made else reported


def _namespace(job: Job) -> str:
    if job.is_external:
        return external_pods.object_scope(job)
    return job.tenant.slug if job.cluster.separates_tenants else ""
