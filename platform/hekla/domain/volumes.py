"""Volumes of a job, and where its tasks mount them. The terms are those of Volcano and Kubernetes.

A volume is one of three: an existing claim, by its name; a claim created for the job, shared by its pods and deleted
with the job; an empty directory of each pod, on disk or in memory.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from hekla.domain.errors import Problem
from hekla.domain.field_types import Label, Quantity, SchemaKeywords, Text
from hekla.domain.resources import parse_quantity
from hekla.domain.translation import translate
from hekla.domain.validation import InconsistentFields, join, quote, suggest

if TYPE_CHECKING:
    from hekla.domain.task_spec import TaskSpec

MAX_VOLUMES = 32
WORKING_DIR = PurePosixPath("/work")
"""The working folder of a pod that has its own root file system."""
SHARED_MEMORY = PurePosixPath("/dev/shm")  # noqa: S108  (a path in pods, nothing is written here)
_OBJECT = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_OF_THE_SYSTEM = (PurePosixPath("/proc"), PurePosixPath("/sys"), PurePosixPath("/dev"))


def _size(text: str) -> str:
    """The text, if it is an amount of bytes above zero. Raises ValueError."""
    try:
        size = parse_quantity("memory", text)
    except ValueError as error:
        raise ValueError(translate("{sentence}.", sentence=error)) from error
    if size < 1:
        raise ValueError(translate("Must be more than zero, for example 8Gi."))
    return text


def _size_or_nothing(text: str) -> str:
    return text and _size(text)


def _object_name(text: str) -> str:
    if text and not _OBJECT.fullmatch(text):
        raise ValueError(translate("{text} is not a valid name for a Kubernetes object.", text=quote(text)))
    return text


def _mount_path(text: str) -> str:
    path = PurePosixPath(text)
    if not path.is_absolute() or ".." in path.parts or ":" in text:
        raise ValueError(translate("Must be an absolute path, for example /data, without “..” or a colon."))
    place = PurePosixPath("/", *path.parts[1:])
    if why := mount_path_problem(place):
        raise ValueError(why)
    return str(place)


def mount_path_problem(place: PurePosixPath, called: str = "") -> str:
    """Why no volume can be mounted at an absolute path; empty if one can. `called`: the path in the user's words."""
    path = called or place
    if place == PurePosixPath("/"):
        return translate("A volume cannot replace the root folder. Mount it at a folder, for example /data.")
    if any(place.is_relative_to(one) for one in _OF_THE_SYSTEM) and not place.is_relative_to(SHARED_MEMORY):
        return translate("{path} belongs to the system. Only /dev/shm can be mounted there.", path=path)
    if WORKING_DIR.is_relative_to(place):
        return translate("{path} is the pod's working folder with the job's files. Mount below it.", path=path)
    return ""


def _sub_path(text: str) -> str:
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(translate("Must be a relative path in the volume, without “..”."))
    return str(path) if path.parts else ""


Size = Annotated[Quantity, Field(max_length=64), AfterValidator(_size)]
OptionalSize = Annotated[Quantity, Field(max_length=64), AfterValidator(_size_or_nothing)]
ObjectName = Annotated[str, Field(max_length=253), AfterValidator(_object_name)]


class AccessMode(StrEnum):
    """Nodes that can mount a claim at the same time, and how. These are requests: the storage class decides."""

    READ_WRITE_ONCE = "ReadWriteOnce"
    READ_ONLY_MANY = "ReadOnlyMany"
    READ_WRITE_MANY = "ReadWriteMany"
    READ_WRITE_ONCE_POD = "ReadWriteOncePod"


class Medium(StrEnum):
    """The storage medium of an empty directory."""

    DISK = ""
    MEMORY = "Memory"


class VolumeClaim(BaseModel):
    """A claim to create. `storage_class`: empty for the cluster's default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    storage: Size
    access_modes: Annotated[tuple[AccessMode, ...], Field(min_length=1, max_length=4)] = (AccessMode.READ_WRITE_ONCE,)
    storage_class: ObjectName = ""


class EmptyDir(BaseModel):
    """A folder that is empty at first and is deleted with its pod. In memory it counts as memory of the pod."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    medium: Medium = Medium.DISK
    size_limit: OptionalSize = ""


class VolumeSpec(BaseModel):
    """A volume that tasks mount by name. Exactly one of the three sources is required."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Label
    volume_claim_name: ObjectName = ""
    volume_claim: VolumeClaim | None = None
    empty_dir: EmptyDir | None = None

    @model_validator(mode="after")
    def _is_one_thing(self) -> "VolumeSpec":
        if sum(bool(one) for one in (self.volume_claim_name, self.volume_claim, self.empty_dir is not None)) != 1:
            message = translate(
                "Set exactly one of volume_claim_name (existing claim), volume_claim (created for the job), empty_dir."
            )
            raise InconsistentFields([Problem("", message)])
        return self

    @property
    def can_be_shared(self) -> bool:
        """Whether pods on several nodes can mount it at once. True for existing claims and empty directories."""
        modes = self.volume_claim.access_modes if self.volume_claim else (AccessMode.READ_WRITE_MANY,)
        return bool({AccessMode.READ_ONLY_MANY, AccessMode.READ_WRITE_MANY} & set(modes))

    @property
    def is_for_one_pod(self) -> bool:
        """Whether only one pod can mount it."""
        return self.volume_claim is not None and set(self.volume_claim.access_modes) == {AccessMode.READ_WRITE_ONCE_POD}


class VolumeMount(BaseModel):
    """A mount of a volume in the pods of a task. `sub_path`: a folder within the volume; default: all of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Label
    mount_path: Annotated[
        Text, Field(max_length=1024), AfterValidator(_mount_path), SchemaKeywords({"pattern": "^/[^:]+$"})
    ]
    sub_path: Annotated[Text, Field(max_length=1024), AfterValidator(_sub_path)] = ""
    read_only: bool = False


def duplicate_names(volumes: Sequence[VolumeSpec]) -> list[Problem]:
    """Volumes with the name of an earlier one, by their paths in the list."""
    names = [volume.name for volume in volumes]
    return [
        Problem(join(place, "name"), translate("Another volume has the name {name}.", name=quote(name)))
        for place, name in enumerate(names)
        if name in names[:place]
    ]


def mount_problems(volumes: Sequence[VolumeSpec], tasks: Sequence["TaskSpec"]) -> list[Problem]:
    """Invalid mounts, by their paths in the list of tasks."""
    names = [volume.name for volume in volumes]
    alone = {volume.name for volume in volumes if volume.is_for_one_pod}
    pods = {name: sum(task.replicas for task in tasks if is_mounted(task, name)) for name in alone}
    found: list[Problem] = []
    for place, task in enumerate(tasks):
        paths: list[str] = []
        for number, mount in enumerate(task.volume_mounts):
            at = join(place, "volume_mounts", number)
            if mount.name not in names:
                found.append(Problem(join(at, "name"), _no_volume(mount.name, names)))
            if mount.mount_path in paths:
                message = translate("Another volume of the task is mounted at {path}.", path=mount.mount_path)
                found.append(Problem(join(at, "mount_path"), message))
            if pods.get(mount.name, 0) > 1:
                message = translate("A volume with ReadWriteOncePod can be mounted by one pod only.")
                found.append(Problem(join(at, "name"), message))
            paths.append(mount.mount_path)
    return found


def unmounted_volumes(volumes: Sequence[VolumeSpec], tasks: Sequence["TaskSpec"]) -> list[Problem]:
    """Volumes that no task mounts, by their names."""
    return [
        Problem(volume.name, translate("No task mounts the volume {name}.", name=quote(volume.name)))
        for volume in volumes
        if not any(is_mounted(task, volume.name) for task in tasks)
    ]


def mounts_over_files(tasks: Sequence["TaskSpec"], files: Iterable[str]) -> list[Problem]:
    """Mounts that would hide a file of the job or lie within one, by their paths in the list of tasks."""
    paths = [WORKING_DIR / name for name in files]
    return [
        Problem(
            join(place, "volume_mounts", number, "mount_path"),
            translate("The job's file {path} is there.", path=file.relative_to(WORKING_DIR)),
        )
        for place, task in enumerate(tasks)
        for number, mount in enumerate(task.volume_mounts)
        for file in paths
        if is_over(PurePosixPath(mount.mount_path), file)
    ]


def is_over(place: PurePosixPath, file: PurePosixPath) -> bool:
    """Whether a volume mounted at `place` would hide the file or lie within it."""
    return file.is_relative_to(place) or place.is_relative_to(file)


def remarks(volumes: Sequence[VolumeSpec], tasks: Sequence["TaskSpec"]) -> Iterator[Problem]:
    """Warnings about volumes that can keep pods pending, by the names of the volumes."""
    for volume in volumes:
        pods = sum(task.replicas for task in tasks if is_mounted(task, volume.name))
        if pods > 1 and not volume.can_be_shared:
            message = translate(
                "A claim with ReadWriteOnce can be mounted on one node only, but {pods} pods mount it. Pods on "
                "other nodes stay pending. Use ReadWriteMany for several nodes.",
                pods=pods,
            )
            yield Problem(volume.name, message)


def is_mounted(task: "TaskSpec", name: str) -> bool:
    """Whether the task mounts the volume of that name."""
    return any(mount.name == name for mount in task.volume_mounts)


def _no_volume(name: str, names: Sequence[str]) -> str:
    if hint := suggest(name, names):
        return translate("Unknown volume {name}{hint}", name=quote(name), hint=hint)
    return translate("The job has no volume {name}.", name=quote(name))
