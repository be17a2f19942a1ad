"""The container engine of this machine."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from hekla.backends.base import BackendError
from hekla.backends.local.containers import registries, removal
from hekla.backends.local.containers.engine import Engine, EngineError

CLUSTER_LABEL, POD_LABEL = "hekla.dev/cluster", "hekla.dev/pod"
"""Labels of containers: the folder of the cluster, and the mark of the pod."""
_LIMITS = {"memory": "MemoryLimit", "cpu": "CpuCfsQuota", "pids": "PidsLimit"}
_SECONDS = 10.0
_PODMAN, _PODMAN_WITH_DEVICES = "Podman", (5, 4)


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """An engine. `limits`: those that it enforces here."""

    name: str
    version: str
    limits: frozenset[str]

    @property
    def takes_devices(self) -> bool:
        """Whether it takes devices by their CDI names. Earlier versions of Podman ignore them without an error."""
        version = tuple(int(part) for part in re.findall(r"\d+", self.version)[:2])
        return self.name != _PODMAN or version >= _PODMAN_WITH_DEVICES


class Runtime:
    """The engine at a socket. `image`: of pods that name none. `home`: the console's data. `cluster`: its folder."""

    def __init__(self, socket: str, image: str, *, home: Path, cluster: Path) -> None:
        self.socket, self.image = socket, image
        self.registries = str(home / registries.FILE)
        self.cluster = str(cluster)
        self._info: EngineInfo | None = None

    def info(self) -> EngineInfo:
        """The engine. Raises BackendError if it does not answer now.

        What it tells is kept, because Podman takes half a second.
        """
        engine = Engine(self.socket)
        try:
            engine.request("GET", "/_ping", seconds=_SECONDS)
            if self._info is None:
                found = engine.request("GET", "/info", seconds=_SECONDS)
                name = _PODMAN if "BuildahVersion" in found else "Docker"
                limits = frozenset(limit for limit, key in _LIMITS.items() if found.get(key))
                self._info = EngineInfo(name, str(found["ServerVersion"]), limits)
        except (OSError, EngineError, LookupError, TypeError) as error:
            raise BackendError(f"No container engine answers at {self.socket}: {error}") from error
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
    """The first socket that exists: of Podman without root, of Podman, of Docker. Without any, the first of these."""
    own = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    places = (f"{own}/podman/podman.sock", "/run/podman/podman.sock", "/var/run/docker.sock")
    return next((place for place in places if os.path.exists(place)), places[0])
