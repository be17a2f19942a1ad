"""Devices of a cluster and claims to them, as the engine's input, from the objects that its backend reports.

A claim from a template exists only once its pod does, which is after the engine has chosen a node. Until then the
engine gets the claim that the template would make.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.backends.base import PodKey
from hekla.domain.cluster_objects import DEVICE_KINDS, ObjectKind, claim_name, template_name
from hekla.engine import device_objects
from hekla.engine.devices import DeviceClaim, Devices
from hekla.scheduling.cluster_objects import ObjectCache, claim_namespace, in_lists

NO_DEVICES = Devices()
_LISTS = {
    kind: device_objects.LISTS.get(kind, device_objects.LISTS[ObjectKind.RESOURCE_CLAIM]) for kind in DEVICE_KINDS
}


def device_cache() -> ObjectCache[Devices]:
    """A cache of devices, with templates as claims."""
    return ObjectCache(DEVICE_KINDS, lambda objects: device_objects.devices(in_lists(objects, _LISTS)), NO_DEVICES)


def named_claims(job: Job, task: str) -> tuple[str, ...]:
    """The existing claims that the pods of a task share, as the engine names them."""
    claims = spec_of(job).task(task).resource_claims
    namespace = claim_namespace(job) if claims else ""
    return tuple(f"{namespace}/{one.resource_claim_name}" for one in claims if one.resource_claim_name)


def own_claims(job: Job, pod: Pod) -> Iterator[tuple[str, str]]:
    """The claims that a pod gets from templates, as the engine names them, each with that of its template."""
    for one in spec_of(job).task(pod.task).resource_claims:
        if one.resource_claim_template_name:
            key = PodKey(job.uid.hex, pod.task, pod.index, pod.attempt)
            name = pod.external.name if job.is_external else key.name
            namespace = claim_namespace(job)
            yield claim_name(namespace, name, one.name), template_name(namespace, one.resource_claim_template_name)


def with_own_claims(reported: Devices, jobs: Iterable[tuple[Job, Iterable[Pod]]]) -> Devices:
    """The devices with the claims that these jobs' pods get from templates."""
    made: dict[str, DeviceClaim] = {}
    for job, pods in jobs:
        for pod in pods:
            for name, template in own_claims(job, pod):
                if name not in reported.claims and template in reported.claims:
                    made[name] = reported.claims[template]
    return replace(reported, claims={**reported.claims, **made}) if made else reported
