"""Landlock: the kernel checks each path that the pod opens, also where a mount should be missing.

Since Linux 6.12 it also keeps pods from the abstract Unix sockets and the processes of others.
"""

import contextlib
import ctypes
import os
from collections.abc import Iterable

from hekla.backends.local.sandbox import system

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_VERSION_FLAG, _BELOW_PATH = 1, 1
_LIST = 8
_READ, _WRITE_FILE, _TRUNCATE, _IOCTL = 1 | 4 | _LIST, 2, 1 << 14, 1 << 15
_OF_FILES = 1 | 2 | 4 | _TRUNCATE | _IOCTL
_RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: _TRUNCATE, 5: _IOCTL}
"""Rights to files, by the version that brought them."""
_SCOPES_SINCE, _NETWORK_SINCE, _SCOPES = 6, 4, 3


class _Rule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("rights", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def restrict(
    read_only: Iterable[str], writable: Iterable[str], devices: Iterable[str], listable: Iterable[str] = ()
) -> None:
    """Allow only these paths to this process and all that it starts. Needs no_new_privs. Raises OSError.

    Paths that do not exist are left out. `devices` can be read and written, but nothing is created there. `listable`:
    folders whose names can be listed.
    """
    version = system.syscall("landlock", _CREATE, None, ctypes.c_size_t(0), _VERSION_FLAG)
    every = sum(rights for since, rights in _RIGHTS.items() if since <= version)
    attributes = (
        [every, 0, _SCOPES] if version >= _SCOPES_SINCE else [every, 0] if version >= _NETWORK_SINCE else [every]
    )
    wanted = (ctypes.c_uint64 * len(attributes))(*attributes)
    rules = system.syscall("landlock", _CREATE, ctypes.byref(wanted), ctypes.c_size_t(8 * len(attributes)), 0)
    try:
        for paths, rights in (
            (read_only, _READ),
            (writable, every),
            (devices, _READ | _WRITE_FILE | _TRUNCATE | _IOCTL),
            (listable, _LIST),
        ):
            for path in paths:
                _allow(rules, path, rights & every)
        system.syscall("landlock", _RESTRICT, rules, 0)
    finally:
        os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    with contextlib.suppress(FileNotFoundError, PermissionError):
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            allowed = rights if os.path.isdir(path) else rights & _OF_FILES
            system.syscall("landlock", _ADD_RULE, rules, _BELOW_PATH, ctypes.byref(_Rule(allowed, place)), 0)
        finally:
            os.close(place)
