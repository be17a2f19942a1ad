"""The container engine of this machine."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from hekla.backends.base import BackendError
from hekla.backends.local.containers import image_access, registries, removal
from hekla.backends.local.containers.engine import Engine, EngineError

CLUSTER_LABEL, POD_LABEL = "hekla.dev/cluster", "hekla.dev/pod"
"""Labels of containers: the folder of the cluster, and the mark of the pod."""
_LIMITS = {"memory": "MemoryLimit", "cpu": "CpuCfsQuota", "pids": "PidsLimit", "cpuset": "CPUSet"}
_SECONDS = 10.0
_PODMAN, _PODMAN_WITH_DEVICES = "Podman", (5, 4)


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """An engine. `limits`: those that it enforces here. `filters_calls`: whether its containers have seccomp.

    `is_rootless`: whether it runs as a user without root, and its containers with the rights of that user.
    `storage`: its driver. `oci_runtime`: the program that runs its containers.
    """

    name: str
    version: str
    limits: frozenset[str]
    is_rootless: bool = False
    filters_calls: bool = True
    storage: str = ""
    oci_runtime: str = ""

    @property
    def takes_devices(self) -> bool:
        """Whether it takes devices by their CDI names. Earlier versions of Podman ignore them without an error."""
        version = tuple(int(part) for part in re.findall(r"\d+", self.version)[:2])
        return self.name != _PODMAN or version >= _PODMAN_WITH_DEVICES

    @property
    def mounts_before_start(self) -> bool:
        """Whether a container has its mounts before its program runs, so that they can be checked."""
        return self.name == _PODMAN


def ask(socket: str) -> EngineInfo:
    """The engine at this socket. Raises BackendError if it does not answer now."""
    try:
        found = Engine(socket).request("GET", "/info", seconds=_SECONDS)
        security = " ".join(found.get("SecurityOptions") or ())
        is_rootless = bool(found.get("Rootless")) or "name=rootless" in security
        is_powerless = is_rootless and str(found.get("CgroupVersion")) == "1"  # it ignores limits, whatever it tells
        return EngineInfo(
            _PODMAN if "BuildahVersion" in found else "Docker",
            str(found["ServerVersion"]),
            limits=frozenset(limit for limit, key in _LIMITS.items() if found.get(key) and not is_powerless),
            is_rootless=is_rootless,
            filters_calls="name=seccomp" in security,
            storage=str(found.get("Driver", "")),
            oci_runtime=str(found.get("DefaultRuntime", "")),
        )
    except (OSError, EngineError, LookupError, TypeError, AttributeError) as error:
        raise BackendError(f"No container engine answers at {socket}: {error}") from error


class Runtime:
    """The engine at a socket. `image`: of pods that name none. `home`: the console's data. `cluster`: its folder."""

    def __init__(self, socket: str, image: str, *, home: Path, cluster: Path) -> None:
        self.socket, self.image = socket, image
        self.registries = str(home / registries.FILE)
        self.pulled = str(home / image_access.FOLDER)
        self.cluster = str(cluster)
        self._info: EngineInfo | None = None

    def info(self) -> EngineInfo:
        """The engine. Raises BackendError if it does not answer now, or if it cannot have a user for each tenant.

        What it tells is kept, because Podman takes half a second.
        """
        try:
            Engine(self.socket).request("GET", "/_ping", seconds=_SECONDS)
        except (OSError, EngineError) as error:
            raise BackendError(f"No container engine answers at {self.socket}: {error}") from error
        if self._info is None:
            self._info = ask(self.socket)
        if self._info.is_rootless and os.geteuid() == 0:
            raise BackendError(
                f"The container engine at {self.socket} runs without root, so it has no users for tenants. Run Hekla "
                "as the user of the engine, or use an engine of root."
            )
        return self._info

    def containers(self) -> Mapping[str, str]:
        """The containers of the cluster's pods, also ended ones: each with the mark of its pod. Raises BackendError."""
        filters = quote(json.dumps({"label": [f"{CLUSTER_LABEL}={self.cluster}"]}))
        try:
            found = Engine(self.socket).request("GET", f"/containers/json?all=true&filters={filters}")
            return {one["Names"][0].removeprefix("/"): one["Labels"][POD_LABEL] for one in found}
        except (OSError, EngineError, LookupError, TypeError) as error:
            raise BackendError(f"No container engine answers at {self.socket}: {error}") from error

    def remove_leftovers(self, job: str) -> None:
        """Remove containers of this job, whose pods' folders are gone. Raises BackendError."""
        for name, mark in self.containers().items():
            if mark.startswith(f"{job}:") and (problem := removal.remove(self.socket, name)):
                raise BackendError(problem)

    def user(self, uid: int) -> str:
        """The user in a container whose pod has this user id; 0: the console's own user, which is not root.

        In an engine without root that user is root, which has no rights there beyond those of the console.
        """
        if uid:
            return f"{uid}:{uid}"
        try:
            is_own = os.stat(self.socket).st_uid == os.geteuid()
        except OSError as error:
            raise BackendError(f"No container engine answers at {self.socket}: {error}") from error
        return "0:0" if is_own else f"{os.geteuid()}:{os.getegid()}"


def default_socket() -> str:
    """The first of the usual sockets that exists. Without any, the first of all."""
    places = usual_sockets()
    return next((place for place in places if os.path.exists(place)), places[0])


def usual_sockets() -> tuple[str, ...]:
    """Of Podman and Docker without root, of Podman, of Docker."""
    own = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    rootless = (f"{own}/podman/podman.sock", f"{own}/docker.sock")
    return (*rootless, "/run/podman/podman.sock", "/var/run/docker.sock")
