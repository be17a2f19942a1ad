"""Calls of Linux that Python 3.11 does not have. Each raises OSError with the name of the call."""

import ctypes
import errno
import os

NEW_NS, NEW_IPC, NEW_USER, NEW_PID = 0x0002_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 36, 38
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_SETATTR = 442
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
MACHINE = os.uname().machine

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Move this process, or for `NEW_PID` its next child, to new namespaces."""
    _check("unshare", _libc.unshare(flags))


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount a file system, or bind a path."""
    texts = [text.encode() if text else None for text in (source, target, kind)]
    _check(f"mount {target}", _libc.mount(*texts, ctypes.c_ulong(flags), data.encode() if data else None))


def protect_mount(path: str, attributes: int) -> None:
    """Set attributes (`MS_RDONLY`, `MS_NOSUID`, `MS_NODEV`) of a mount, and of all mounts below it."""
    wanted = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    call = ctypes.c_long(_MOUNT_SETATTR)
    result = _libc.syscall(call, _AT_FDCWD, path.encode(), _AT_RECURSIVE, ctypes.byref(wanted), ctypes.c_size_t(32))
    _check(f"mount_setattr {path}", result)


def enter_root(path: str) -> None:
    """Make a mounted folder the root file system of this process, and detach the former one."""
    if MACHINE not in _PIVOT_ROOT:
        raise OSError(errno.ENOSYS, f"pivot_root is not known for {MACHINE}")
    os.chdir(path)
    _check("pivot_root", _libc.syscall(ctypes.c_long(_PIVOT_ROOT[MACHINE]), b".", b"."))
    _check("umount", _libc.umount2(b".", _MNT_DETACH))
    os.chdir("/")


def prctl(option: int, value: int, third: int = 0) -> None:
    """Call Linux's prctl."""
    _check(f"prctl {option}", _libc.prctl(option, *map(ctypes.c_ulong, (value, third, 0, 0))))


def syscall(name: str, number: int, *arguments: object) -> int:
    """Call a system call by its number. Returns its result."""
    return _check(name, _libc.syscall(ctypes.c_long(number), *arguments))


def _check(name: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return int(result)
