"""The volumes of a job in words."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from hekla.domain.jobspec import JobSpec
from hekla.domain.volumes import Medium, VolumeSpec


@dataclass(frozen=True, slots=True)
class TaskVolumeMount:
    """A mount of a volume in the pods of a task."""

    task: str
    path: str
    is_read_only: bool


@dataclass(frozen=True, slots=True)
class VolumeView:
    """A volume, as a page shows it."""

    name: str
    words: str
    places: tuple[TaskVolumeMount, ...]


def volume_views(spec: JobSpec) -> list[VolumeView]:
    """All volumes of the job."""
    return [VolumeView(volume.name, _words(volume), _places(spec, volume.name)) for volume in spec.volumes]


def _words(volume: VolumeSpec) -> str:
    if volume.volume_claim:
        return _("claim of %(size)s, deleted with the job") % {"size": volume.volume_claim.storage}
    if volume.empty_dir is None:
        return _("claim %(name)s") % {"name": volume.volume_claim_name}
    in_memory, size = volume.empty_dir.medium is Medium.MEMORY, volume.empty_dir.size_limit
    if not size:
        return _("memory of the pod") if in_memory else _("empty folder per pod")
    bounded = {"size": size}
    if in_memory:
        return _("memory of the pod, at most %(size)s") % bounded
    return _("empty folder per pod, at most %(size)s") % bounded


def _places(spec: JobSpec, name: str) -> tuple[TaskVolumeMount, ...]:
    return tuple(
        TaskVolumeMount(task.name, mount.mount_path, mount.read_only)
        for task in spec.tasks
        for mount in task.volume_mounts
        if mount.name == name
    )
