"""Volumes of a job: existing claims, claims created for the job, and empty directories.

A claim of the job is created before the first pod that mounts it. If Hekla does not bind the claims of the cluster, it
names the node of that pod, like the cluster's own scheduler does. So its volume is provisioned where that node can
reach it, also if its storage class waits for the first consumer.

The working folder of a pod that may freeze is a claim of that pod, created and deleted likewise.
"""

from collections.abc import Iterator
from pathlib import PurePosixPath

from hekla.backends.base import PodOrder, StartRefused
from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.api import Json
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.domain.formats import volumes as written
from hekla.engine.storage_objects import SELECTED_NODE


def volumes(order: PodOrder) -> list[Json]:
    """A volume for each that the pod mounts."""
    return [{"name": _name(number), **source} for number, source in enumerate(_sources(order))]


def mounts(order: PodOrder) -> list[Json]:
    """The mounts in the container."""
    numbers = {volume.name: number for number, volume in enumerate(order.volumes)}
    return [{**one, "name": _name(numbers[one["name"]])} for one in written.dump_mounts(order.volume_mounts)]


def claims(cluster: str, order: PodOrder, config: KubernetesConfig) -> Iterator[Json]:
    """The claims of the pod's job that the pod mounts, to be created. If Hekla does not bind them, they name its node.

    A pod that continues where another one failed finds all of them there.
    """
    if order.frozen:
        return
    wanted = {
        names.claim_of(order.key.job, volume.name): written.claim_spec(volume.volume_claim)
        for volume in order.volumes
        if volume.volume_claim
    }
    if order.freezes:
        work: Json = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": config.work_claim_size}},
        }
        storage_class = {"storageClassName": config.work_claim_class} if config.work_claim_class else {}
        wanted[names.work_claim_of(order.key)] = work | storage_class
    for name, spec in wanted.items():
        meta: Json = {"name": name, "labels": names.job_labels(cluster, order.key.job)}
        if not config.storage:
            meta["annotations"] = {SELECTED_NODE: order.node}
        yield {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def work_claim(order: PodOrder) -> str:
    """The claim of the working folder; empty if it ends with the pod."""
    key = order.frozen or (order.key if order.freezes else None)
    return names.work_claim_of(key) if key else ""


def work_volume(order: PodOrder) -> Json:
    """The source of the working folder: a claim if it outlives the pod, or did outlive another one."""
    claim = work_claim(order)
    return {"persistentVolumeClaim": {"claimName": claim}} if claim else {"emptyDir": {}}


def claim_names(order: PodOrder) -> Iterator[str]:
    """Names of all claims that the pod mounts."""
    if claim := work_claim(order):
        yield claim
    for volume in order.volumes:
        if volume.empty_dir is None:
            yield volume.volume_claim_name or names.claim_of(_owner(order), volume.name)


def existing_claims(order: PodOrder) -> Iterator[str]:
    """Names of the claims that must exist already."""
    return (volume.volume_claim_name for volume in order.volumes if volume.volume_claim_name)


def check(order: PodOrder) -> None:
    """Raise StartRefused for a mount path that a plugin uses."""
    used = {str(PurePosixPath(path)) for path in order.mounts}
    if hidden := next((mount for mount in order.volume_mounts if mount.mount_path in used), None):
        raise StartRefused(f"Nothing can be mounted at “{hidden.mount_path}”: a plugin of the job has its files there.")


def check_claim(name: str, config: KubernetesConfig) -> None:
    """Raise StartRefused for a claim in the shared namespace that the configuration does not list for jobs.

    Other claims may contain Hekla's own data.
    """
    if name and name not in config.claims:
        raise StartRefused(
            f"The claim “{name}” is not for jobs of this cluster. Those that are stand in the cluster's configuration, "
            "under “claims”."
        )


def _owner(order: PodOrder) -> str:
    """The job for which the claims of its volumes were created."""
    return order.frozen.job if order.frozen else order.key.job


def _sources(order: PodOrder) -> Iterator[Json]:
    for volume in order.volumes:
        if volume.empty_dir is not None:
            yield written.empty_dir(volume)
        else:
            claim = volume.volume_claim_name or names.claim_of(_owner(order), volume.name)
            yield {"persistentVolumeClaim": {"claimName": claim}}


def _name(number: int) -> str:
    return f"volume-{number}"
