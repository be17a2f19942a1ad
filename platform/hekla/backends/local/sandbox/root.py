"""The pod's root file system: a mount namespace in which only these paths exist."""

import os
from collections.abc import Collection

from hekla.backends.local.sandbox import system
from hekla.backends.local.sandbox.order import HIDDEN, READ_ONLY, SandboxOrder
from hekla.backends.local.sandbox.system import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_PRIVATE, MS_RDONLY, MS_REC

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "kvm", "kfd", "dri", "infiniband")
_ACCELERATORS = ("nvidia", "davinci", "devmm_svm", "hisi_hdc", "xpu")
"""The beginnings of the names of those of NVIDIA, Huawei and Kunlun; AMD's are `kfd` and `dri`."""
_LINKS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}


def enter(order: SandboxOrder) -> None:
    """Build the root file system, and make it that of this process, which is alone in its mount namespace."""
    root = order["root"]
    os.umask(0o022)
    system.mount("", "/", flags=MS_REC | MS_PRIVATE)
    system.mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=16m")
    for mode, path, inside in order["paths"]:
        _add(mode, path, root + inside)
    _add_devices(f"{root}/dev", order.get("hidden_devices", ()))
    os.makedirs(f"{root}/proc", exist_ok=True)
    system.mount("proc", f"{root}/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    system.enter_root(root)


def _add(mode: str, path: str, target: str) -> None:
    """Add one path. Those that this machine does not have are left out."""
    if mode == HIDDEN:
        if os.path.isdir(target):
            system.mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m")
    elif os.path.islink(path):
        _add_link(path, target)
    elif os.path.exists(path):
        _bind(path, target)
        system.protect_mount(target, (MS_RDONLY if mode == READ_ONLY else 0) | MS_NOSUID | MS_NODEV)


def _add_link(path: str, target: str) -> None:
    if not os.path.lexists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(os.readlink(path), target)


def _bind(path: str, target: str) -> None:
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    elif not os.path.lexists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    system.mount(path, target, flags=MS_BIND | MS_REC)


def _add_devices(target: str, hidden: Collection[str]) -> None:
    """The devices of every container, and the machine's accelerators except those that other pods hold."""
    os.makedirs(f"{target}/pts")
    os.makedirs(f"{target}/shm")
    system.mount("tmpfs", f"{target}/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
    system.mount("devpts", f"{target}/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
    for name in os.listdir("/dev"):
        if name not in hidden and (name in _DEVICES or name.startswith(_ACCELERATORS)):
            for one in _parts(name, hidden):
                _bind(f"/dev/{one}", f"{target}/{one}")
    for name, path in {**_LINKS, "ptmx": "pts/ptmx"}.items():
        os.symlink(path, f"{target}/{name}")


def _parts(name: str, hidden: Collection[str]) -> list[str]:
    """The device or folder of devices itself; of a folder with hidden ones, only the others."""
    if not any(one.startswith(f"{name}/") for one in hidden):
        return [name]
    return [one for one in (f"{name}/{part}" for part in os.listdir(f"/dev/{name}")) if one not in hidden]
