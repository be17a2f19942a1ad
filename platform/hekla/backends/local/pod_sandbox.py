"""The sandbox of each pod, and its user.

A pod sees its own folder, its environment, the console's interpreter, and the system's programs and settings.
"""

import getpass
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from hekla.backends.local import isolation
from hekla.backends.local.pod_folder import PodFolder
from hekla.backends.local.sandbox.order import HIDDEN, LAYERS, NAMESPACES, READ_ONLY, WRITABLE, SandboxOrder
from hekla.domain.frameworks.mpi_agent import RUN_FOLDER

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/sys")
_HOME = "/home/pod"
"""Where each pod finds its working folder, so that programs can send its path to other pods, as mpirun does."""
_SECRET = ("/etc/hekla",)
"""The folder of the console's own settings where it is installed for a whole machine."""

SharedPath = tuple[str, str]
"""A mode and a folder of the machine."""


def shared_paths(readable: Iterable[str], writable: Iterable[str]) -> list[SharedPath]:
    """The folders of the machine that all pods may use. A folder that lies within another comes after it."""
    modes = dict.fromkeys(readable, READ_ONLY) | dict.fromkeys(writable, WRITABLE)
    return [(mode, path) for path, mode in sorted(modes.items())]


def sandbox_of(
    folder: PodFolder,
    *,
    uid: int,
    home: Path,
    environment: str | None,
    shared: Sequence[SharedPath],
    hidden_devices: list[str],
) -> SandboxOrder | None:
    """The sandbox of the pod in this folder; None if this machine offers no layer.

    `home`: the console's data, hidden. `environment`: the folder of its virtual environment. `shared`: folders of the
    machine that every pod may use. `hidden_devices`: files of /dev that this one may not.
    """
    layers = [layer for layer in LAYERS if layer not in isolation.failures()]
    if not layers:
        return None
    readable = [*_interpreter(), *([environment] if environment else [])]
    paths = [
        *((WRITABLE, folder.tmp, path) for path in ("/tmp", "/var/tmp")),  # noqa: S108  (those of the pod)
        *((READ_ONLY, path, path) for path in (*_SYSTEM, *_name_resolution())),
        *((mode, path, path) for mode, path in shared),
        *((HIDDEN, path, path) for path in (str(home), *_SECRET)),
        *((READ_ONLY, path, path) for path in readable),
        *((WRITABLE, path, path) for path in (folder.tmp, folder.volumes, folder.claims)),
        (WRITABLE, folder.work, _HOME),
        (WRITABLE, folder.run, RUN_FOLDER),
        *((READ_ONLY, folder.hosts, path) for path in (folder.hosts, "/etc/hosts")),
    ]
    if uid:
        paths += [(READ_ONLY, folder.passwd, "/etc/passwd"), (READ_ONLY, folder.group, "/etc/group")]
    return SandboxOrder(paths=paths, hidden_devices=hidden_devices, root=folder.root, uid=uid, layers=layers)


def home_of(folder: PodFolder) -> str:
    """The path at which the pod finds its working folder."""
    return folder.work if NAMESPACES in isolation.failures() else _HOME


def user_name(uid: int) -> str:
    """The name of the user as which a pod runs."""
    return "pod" if uid else getpass.getuser()


def write_users(folder: PodFolder, uid: int, home: str) -> None:
    """Write the user database of a pod with a user id of its own, and give it its folders."""
    name = user_name(uid)
    for path, line in ((folder.passwd, f"{name}:x:{uid}:{uid}::{home}:/bin/sh"), (folder.group, f"{name}:x:{uid}:")):
        system = Path("/etc") / os.path.basename(path)
        Path(path).write_text(f"{system.read_text().rstrip()}\n{line}\n")
    give_folders(folder, uid)


def give_folders(folder: PodFolder, uid: int) -> None:
    """Make the user the owner of the pod's own folders, before the pod can reach them."""
    for place in (folder.work, folder.tmp):
        _give(place, uid)


def _give(place: str, uid: int) -> None:
    """Make the user the owner of a folder and its content. Does not follow links."""
    for folder, folders, files in os.walk(place):
        for name in (*folders, *files):
            os.chown(os.path.join(folder, name), uid, uid, follow_symlinks=False)
        os.chown(folder, uid, uid, follow_symlinks=False)


def _interpreter() -> list[str]:
    """The console's interpreter: its folders, and each link on the way to them."""
    links, path = [], sys.executable
    while os.path.islink(path):
        links.append(path)
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    folders = [os.path.realpath(sys.base_prefix), sys.base_prefix, sys.prefix]
    return list(dict.fromkeys([*folders, *links, path]))


def _name_resolution() -> list[str]:
    """The file to which /etc/resolv.conf is a link on many systems."""
    path = os.path.realpath("/etc/resolv.conf")
    return [] if path.startswith("/etc/") else [path]
