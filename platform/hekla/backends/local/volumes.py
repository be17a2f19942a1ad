"""Volumes of local pods: folders, with links to them in the working folder, because pods share the machine's root.

A claim created for a job is a folder beside its pods, deleted with the job. An empty directory is a folder beside the
pod's working folder, on disk whatever its medium. Sizes and `read_only` are not enforced. Volumes can be mounted only
below the working folder, except at /dev/shm, which the machine has anyway.
"""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from hekla.backends.base import PodOrder, StartRefused
from hekla.backends.local import folders
from hekla.backends.local.pod_folder import PodFolder
from hekla.domain.volumes import SHARED_MEMORY, WORKING_DIR, VolumeMount, VolumeSpec


def check(order: PodOrder, *, in_containers: bool = False) -> None:
    """Raise StartRefused for volumes and mounts that folders cannot implement."""
    for volume, mount in _mounted(order):
        if volume.volume_claim_name:
            raise StartRefused(
                f"The claim “{volume.volume_claim_name}” is one of a Kubernetes cluster; pods of this machine read its "
                "folders as they are."
            )
        if _is_of_the_machine(volume, mount):
            continue
        path = PurePosixPath(mount.mount_path)
        if in_containers and not path.is_relative_to(WORKING_DIR):
            continue
        if not path.is_relative_to(WORKING_DIR):
            raise StartRefused(
                f"Pods of this machine share its root, so nothing can be mounted at “{path}”. Mount the volume below "
                f"the working folder, such as at {WORKING_DIR}/{volume.name}."
            )
        if any(path.is_relative_to(other.mount_path) for other in order.volume_mounts if other is not mount):
            raise StartRefused(f"“{path}” lies within another volume, which cannot be on this machine.")


def write(order: PodOrder, draft: PodFolder, final: PodFolder, *, uid: int) -> None:
    """Create the folders and the links to them. The pod's folder is written as `draft` and renamed to `final` later.

    `uid`: the user of the pod; 0 for the console's own.
    Raises OSError, and StartRefused if a file is in the place of a folder or link.
    """
    for volume, mount in _linked(order):
        part = PurePosixPath(mount.sub_path)
        what = f"The folder “{part}” of the volume “{volume.name}”"
        folders.create(_parent(volume, draft), volume.name / part, what, uid=uid)
        if not _is_link(mount):
            continue  # a container mounts it
        link = PurePosixPath(mount.mount_path).relative_to(WORKING_DIR)
        folders.create(Path(draft.work), link.parent, f"The mount path “{mount.mount_path}”", uid=uid)
        try:
            (Path(draft.work) / link).symlink_to(_parent(volume, final) / volume.name / part)
        except FileExistsError as error:
            sentence = f"Nothing can be mounted at “{mount.mount_path}”: files of the job are there."
            raise StartRefused(sentence) from error


def write_working_dir(order: PodOrder, draft: PodFolder, *, uid: int) -> None:
    """Create the working folder, also inside a volume. Does not follow links: they refer to the final folder.

    Raises OSError, and StartRefused if a file is in its place.
    """
    root, wanted = Path(draft.work), WORKING_DIR / order.working_dir
    below = wanted.relative_to(WORKING_DIR)
    for volume, mount in _linked(order):
        if wanted.is_relative_to(mount.mount_path):
            root = _parent(volume, draft)
            below = volume.name / PurePosixPath(mount.sub_path) / wanted.relative_to(mount.mount_path)
    folders.create(root, below, f"The working folder “{order.working_dir}”", uid=uid)


def linked_folders(order: PodOrder, folder: PodFolder) -> set[Path]:
    """The folders of the volumes to which the links in the working folder lead.

    A container has each alone: with their parent it could put a link in the place of one, which another would mount.
    """
    return {_parent(volume, folder) / volume.name for volume, mount in _linked(order) if _is_link(mount)}


def mounted_elsewhere(order: PodOrder, folder: PodFolder) -> Iterator[tuple[VolumeMount, Path, PurePosixPath]]:
    """The mounts of a container outside of its working folder: each with the folder of all volumes, and the path below.

    Only the pods of the job can write to the path, except to its first part.
    """
    for volume, mount in _linked(order):
        if not _is_link(mount):
            yield mount, _parent(volume, folder), volume.name / PurePosixPath(mount.sub_path)


def _is_link(mount: VolumeMount) -> bool:
    return PurePosixPath(mount.mount_path).is_relative_to(WORKING_DIR)


def _parent(volume: VolumeSpec, folder: PodFolder) -> Path:
    return Path(folder.claims if volume.volume_claim else folder.volumes)


def _linked(order: PodOrder) -> Iterator[tuple[VolumeSpec, VolumeMount]]:
    return ((volume, mount) for volume, mount in _mounted(order) if not _is_of_the_machine(volume, mount))


def _mounted(order: PodOrder) -> Iterator[tuple[VolumeSpec, VolumeMount]]:
    volumes = {volume.name: volume for volume in order.volumes}
    return ((volumes[mount.name], mount) for mount in order.volume_mounts)


def _is_of_the_machine(volume: VolumeSpec, mount: VolumeMount) -> bool:
    return volume.empty_dir is not None and mount.mount_path == str(SHARED_MEMORY)
