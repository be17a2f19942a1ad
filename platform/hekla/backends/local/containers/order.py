"""The container of a pod: what the engine is asked to create."""

import hashlib
import re
import resource
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, TypedDict

from hekla.backends.base import PodOrder, StartRefused
from hekla.backends.local import gpus, names, volumes
from hekla.backends.local.containers.runtime import CLUSTER_LABEL, POD_LABEL, Runtime
from hekla.backends.local.pod_folder import PodFolder
from hekla.backends.local.pod_sandbox import SharedPath
from hekla.backends.local.sandbox.order import READ_ONLY
from hekla.domain.frameworks.mpi_agent import RUN_FOLDER
from hekla.domain.volumes import WORKING_DIR

_PATH = re.compile(r"[^,\"'\\\x00-\x1f\x7f]+")
_MOST = {"nofile": 65_536, "nproc": 32_768}
_LIMITS = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}


class ContainerOrder(TypedDict):
    """The container of one pod. `body`: of the request that creates it.

    `registries`: the file of credentials. `pulled`: the folder that records their use. `tenant`: of the pod.
    `parts`: the parts of volumes among the mounts, each as the folder of all volumes and the path below.
    """

    socket: str
    name: str
    image: str
    registries: str
    pulled: str
    tenant: str
    parts: list[tuple[str, str]]
    body: dict[str, Any]


def check(order: PodOrder) -> None:
    """Raise StartRefused if a container cannot do this."""
    if order.environment and order.environment.requirements:
        raise StartRefused(
            f"Pods of this cluster are containers, and the environment “{order.environment.name}” is built for "
            "processes. Name an image instead."
        )
    for path in (*order.mounts, *(mount.mount_path for mount in order.volume_mounts)):
        if not _PATH.fullmatch(path):  # Podman reads a comma as the next option, such as another folder of the machine
            raise StartRefused(f"Nothing can be mounted at “{path}” in containers: it has a special character.")


def container_of(
    order: PodOrder,
    folder: PodFolder,
    env: Mapping[str, str],
    *,
    uid: int,
    runtime: Runtime,
    shared: Sequence[SharedPath],
) -> ContainerOrder:
    """The container of the pod in this folder. Raises StartRefused, BackendError if the engine does not answer."""
    image = tagged(order.image or runtime.image)
    body = {
        "Image": image,
        **_command(order),
        "Env": [f"{name}={value}" for name, value in env.items()],
        "StopTimeout": 0,  # the removal of a container kills it at once
        "User": runtime.user(uid),
        "Labels": {CLUSTER_LABEL: runtime.cluster, POD_LABEL: names.entry_of(order.key)},
        "HostConfig": _host_config(order, folder, runtime, shared),
    }
    name = f"hekla-{hashlib.sha256(folder.path.encode()).hexdigest()[:24]}"
    return ContainerOrder(
        socket=runtime.socket,
        name=name,
        image=image,
        registries=runtime.registries,
        pulled=runtime.pulled,
        tenant=order.key.tenant,
        parts=_parts(order, folder, runtime),
        body=body,
    )


def _parts(order: PodOrder, folder: PodFolder, runtime: Runtime) -> list[tuple[str, str]]:
    """The parts of volumes that are mounted. Raises StartRefused if nobody can check what the engine mounts."""
    found = [mounted for mount, *mounted in volumes.mounted_elsewhere(order, folder) if mount.sub_path]
    if found and not runtime.info().mounts_before_start:
        raise StartRefused(
            f"A part of a volume can be mounted only below {WORKING_DIR}: with Docker, it could be replaced by a link."
        )
    return [(str(root), str(below)) for root, below in found]


def _command(order: PodOrder) -> dict[str, Any]:
    """The command and its folder. The image's own command runs in the image's folder unless another is given."""
    folder = {"WorkingDir": str(WORKING_DIR / order.working_dir)} if order.command or order.working_dir else {}
    if order.command:
        return {"Entrypoint": list(order.command), "Cmd": list(order.args), **folder}
    return ({"Cmd": list(order.args)} if order.args else {}) | folder


def tagged(image: str) -> str:
    """The name of an image with its tag, because Docker pulls all images of a name without one."""
    has_version = "@" in image or ":" in image.rpartition("/")[2]
    return image if has_version else f"{image}:latest"


def _host_config(order: PodOrder, folder: PodFolder, runtime: Runtime, shared: Sequence[SharedPath]) -> dict[str, Any]:
    """A root file system of its own, no capabilities, and the machine's network, in which the pod has its address."""
    mounts = _mounts(order, folder, shared)
    found: dict[str, Any] = {
        "NetworkMode": "host",
        "Init": True,  # else signals have no effect on a program that handles none
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "LogConfig": {"Type": "none"},
        "Ulimits": [_limit(name, number) for name, number in _LIMITS.items()],
        "Mounts": [
            {"Type": "bind", "Source": source, "Target": target, "ReadOnly": mode == READ_ONLY}
            for mode, source, target in mounts
        ],
    }
    engine = runtime.info()
    cpu, memory = order.resources.amount("cpu"), order.resources.amount("memory")
    if memory and "memory" in engine.limits:
        found["Memory"] = int(memory)
    if cpu and "cpu" in engine.limits:
        found["NanoCpus"] = int(cpu * 1_000_000)
    if "pids" in engine.limits:
        found["PidsLimit"] = _MOST["nproc"]
    if devices := gpus.container_devices(order):
        if not engine.takes_devices:
            raise StartRefused(
                f"{engine.name} {engine.version} gives containers no GPUs. That needs Podman 5.4 or Docker 25."
            )
        found["DeviceRequests"] = [{"Driver": "cdi", "DeviceIDs": devices}]
    return found


def _mounts(order: PodOrder, folder: PodFolder, shared: Sequence[SharedPath]) -> Iterator[tuple[str, str, str]]:
    """Mode, source and target. Volumes are reached by links in the working folder, except those mounted elsewhere."""
    yield "", folder.work, str(WORKING_DIR)
    yield "", folder.tmp, "/tmp"  # noqa: S108  (in the container)
    yield "", folder.run, RUN_FOLDER
    for place in volumes.linked_folders(order, folder):
        yield "", str(place), str(place)
    for target in ("/etc/hosts", folder.hosts):
        yield READ_ONLY, folder.hosts, target
    for mode, path in shared:
        yield mode, path, path
    for path, below in () if order.frozen else order.mounts.items():  # an ended pod may have put a link there
        if any(PurePosixPath(name).is_relative_to(below) for name in (*order.files, *order.secrets)):
            yield "", f"{folder.work}/{below}", path
    for mount, root, part in volumes.mounted_elsewhere(order, folder):
        yield READ_ONLY if mount.read_only else "", str(root / part), mount.mount_path


def _limit(name: str, number: int) -> dict[str, Any]:
    """A limit below the console's own: an engine without the right to raise limits refuses its defaults."""
    _, hard = resource.getrlimit(number)
    most = _MOST[name] if hard == resource.RLIM_INFINITY else min(hard, _MOST[name])
    return {"Name": name, "Soft": most, "Hard": most}
