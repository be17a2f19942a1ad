"""Volumes of a job: existing claims, claims created for the job, and empty directories.

A claim of the job is created before the first pod that mounts it. If Hekla does not bind the claims of the cluster, it
names the node of that pod, like the cluster's own scheduler does. So its volume is provisioned where that node can
reach it, also if its storage class waits for the first consumer.
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


def claims(cluster: str, order: PodOrder, *, binds_later: bool) -> Iterator[Json]:
    """The claims of the pod's job that the pod mounts, to be created. Not `binds_later`: they name its node."""
    labels = names.job_labels(cluster, order.key.job)
    for volume in order.volumes:
        if volume.volume_claim:
            name = names.claim_of(order.key.job, volume.name)
            meta: Json = {"name": name, "labels": labels}
            if not binds_later:
                meta["annotations"] = {SELECTED_NODE: order.node}
            spec = written.claim_spec(volume.volume_claim)
            yield {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def claim_names(order: PodOrder) -> Iterator[str]:
    """Names of all claims that the pod mounts."""
    for volume in order.volumes:
        if volume.empty_dir is None:
            yield volume.volume_claim_name or names.claim_of(order.key.job, volume.name)


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


def _sources(order: PodOrder) -> Iterator[Json]:
    for volume in order.volumes:
        if volume.empty_dir is not None:
            yield written.empty_dir(volume)
        else:
            claim = volume.volume_claim_name or names.claim_of(order.key.job, volume.name)
            yield {"persistentVolumeClaim": {"claimName": claim}}


def _name(number: int) -> str:
    return f"volume-{number}"
