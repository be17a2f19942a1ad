"""Volumes of a cluster and claims to them, as the engine's input, from the objects that its backend reports.

A claim that is created for a job exists only once a pod of the job starts, which is after the engine has chosen a node.
Until then the engine gets the claim that will be created.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.cluster_objects import claim_name
from hekla.domain.resources import parse_quantity
from hekla.domain.volumes import VolumeClaim, is_mounted
from hekla.engine import storage_objects
from hekla.engine.model import PodGroupSpec
from hekla.engine.storage import PersistentVolumeClaim, Storage, StorageClass
from hekla.scheduling import external_pods
from hekla.scheduling.cluster_objects import ObjectCache, claim_namespace, in_lists

NO_STORAGE = Storage()
_ANY = "any"
"""The provisioner of claims whose volumes the engine cannot know in advance."""


def storage_cache() -> ObjectCache[Storage]:
    """A cache of volumes."""
    lists = storage_objects.LISTS
    return ObjectCache(lists, lambda objects: storage_objects.storage(in_lists(objects, lists)), NO_STORAGE)


def mounts_claims(job: Job) -> bool:
    """Whether the volumes of the job's claims count: it mounts some, and its cluster reports them."""
    return any(one.empty_dir is None for one in spec_of(job).volumes) and _are_reported(job)


def pods_mount_claims(job: Job, pods: Iterable[Pod]) -> bool:
    """The same of external pods: each has claims of its own."""
    return any(map(external_pods.volume_claims, pods)) and _are_reported(job)


def external_claims(job: Job, pod: Pod) -> tuple[str, ...]:
    """The claims that an external pod mounts, as the engine names them."""
    names = external_pods.volume_claims(pod)
    namespace = claim_namespace(job) if names and _are_reported(job) else ""
    return tuple(f"{namespace}/{name}" for name in names) if namespace else ()


def _are_reported(job: Job) -> bool:
    return bool(job.cluster.config.get("storage"))


def mounted_claims(job: Job, task: str) -> tuple[str, ...]:
    """The claims that the pods of a task mount, as the engine names them."""
    if not mounts_claims(job):
        return ()
    spec, namespace = spec_of(job), claim_namespace(job)
    mounted = (one for one in spec.volumes if one.empty_dir is None and is_mounted(spec.task(task), one.name))
    return tuple(
        f"{namespace}/{one.volume_claim_name}"
        if one.volume_claim_name
        else claim_name(namespace, job.uid.hex, one.name)
        for one in mounted
    )


def without_claims(job: PodGroupSpec) -> PodGroupSpec:
    """The job as if it mounted no claims, for a cluster that has not reported its volumes yet."""
    pods = (replace(one, constraints=replace(one.constraints, volume_claims=())) for one in job.pods)
    return replace(job, pods=tuple(pods))


def with_new_claims(reported: Storage, jobs: Iterable[Job]) -> Storage:
    """The volumes with the claims that will be created for these jobs."""
    claims: dict[str, PersistentVolumeClaim] = {}
    classes: dict[str, StorageClass] = {}
    for name, wanted in (one for job in jobs for one in _own_claims(job)):
        if name not in reported.claims:
            claims[name], kind = _new_claim(wanted, reported)
            classes[claims[name].storage_class] = kind
    if not claims:
        return reported
    return replace(reported, claims={**reported.claims, **claims}, classes={**reported.classes, **classes})


def _own_claims(job: Job) -> Iterator[tuple[str, VolumeClaim]]:
    for one in spec_of(job).volumes:
        if one.volume_claim is not None:
            yield claim_name(claim_namespace(job), job.uid.hex, one.name), one.volume_claim


def _new_claim(wanted: VolumeClaim, reported: Storage) -> tuple[PersistentVolumeClaim, StorageClass]:
    """The claim that will be created, with its class. A class that binds at once makes or finds a volume once the claim
    exists, so until then only the places where it provisions count.
    """
    default = next((name for name, one in reported.classes.items() if one.is_default), "")
    name = wanted.storage_class or default
    kind = reported.classes.get(name, StorageClass())
    if name in reported.classes and not kind.waits_for_consumer:
        kind = replace(kind, waits_for_consumer=True) if kind.provisions else _FREE
        name = f"{name}/"
    elif not name:
        name, kind = "/", _FREE
    claim = PersistentVolumeClaim(
        storage_class=name,
        size=parse_quantity("memory", wanted.storage),
        access_modes=frozenset(map(str, wanted.access_modes)),
    )
    return claim, kind


_FREE = StorageClass(_ANY, waits_for_consumer=True)
