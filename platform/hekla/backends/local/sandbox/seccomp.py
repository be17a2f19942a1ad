"""System calls that no pod needs, and that have opened kernels before. They fail with EPERM, as without the right to.

The list follows the default of container runtimes: new namespaces and mounts, kernel modules, keys, tracing of the
kernel, the clock, and io_uring, which is not there for a pod (ENOSYS).
"""

import ctypes
import errno
import struct

from hekla.backends.local.sandbox import system

_ARCHITECTURES = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
_DENIED = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "ioperm": (173,),
    "iopl": (172,),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "userfaultfd": (323, 282),
}
"""The numbers of each call on x86_64, and on aarch64 if it exists there."""
_ABSENT = (425, 426, 427, 435)
"""io_uring, and clone3, whose flags a filter cannot read: libraries then use clone."""
_CLONE, _UNSHARE, _IOCTL = {"x86_64": 56, "aarch64": 220}, {"x86_64": 272, "aarch64": 97}, {"x86_64": 16, "aarch64": 29}
_NEW_NAMESPACES = 0x7E02_0000
_NEW_TIME = 0x80
_TERMINAL_INJECTION = (0x5412, 0x541C)
_FOREIGN_CALLS = 0x4000_0000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_AT, _SECOND_AT = 0, 4, 16, 24
_FILTER_MODE = 2


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]


def restrict() -> None:
    """Apply the filter to this process and all that it starts. Needs no_new_privs. Raises OSError."""
    code = ctypes.create_string_buffer(b"".join(_filter(system.MACHINE)))
    program = _Program(len(code.raw) // 8, ctypes.cast(code, ctypes.c_void_p))
    system.prctl(system.PR_SET_SECCOMP, _FILTER_MODE, ctypes.addressof(program))


def _filter(machine: str) -> list[bytes]:
    """The instructions: the number of the call stays loaded, except in the last parts, which read an argument."""
    if machine not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"There is no seccomp filter for {machine}")
    refused, absent = _ERROR | errno.EPERM, _ERROR | errno.ENOSYS
    return [
        _op(_LOAD, _ARCHITECTURE_AT),
        _op(_EQUAL, _ARCHITECTURES[machine], 1, 0),
        _op(_RETURN, _KILL),
        _op(_LOAD, _NUMBER_AT),
        *_unless_below(_FOREIGN_CALLS, absent),
        *(part for number in _denied(machine) for part in _if_equal(number, refused)),
        *(part for number in _ABSENT for part in _if_equal(number, absent)),
        *_if_argument(_CLONE[machine], _FIRST_AT, [_op(_ANY_BIT, _NEW_NAMESPACES, 0, 1), _op(_RETURN, refused)]),
        *_if_argument(
            _UNSHARE[machine], _FIRST_AT, [_op(_ANY_BIT, _NEW_NAMESPACES | _NEW_TIME, 0, 1), _op(_RETURN, refused)]
        ),
        *_if_argument(
            _IOCTL[machine],
            _SECOND_AT,
            [part for request in _TERMINAL_INJECTION for part in _if_equal(request, refused)],
        ),
        _op(_RETURN, _ALLOW),
    ]


def _denied(machine: str) -> list[int]:
    column = list(_ARCHITECTURES).index(machine)
    return [numbers[column] for numbers in _DENIED.values() if column < len(numbers)]


def _if_equal(value: int, result: int) -> list[bytes]:
    return [_op(_EQUAL, value, 0, 1), _op(_RETURN, result)]


def _unless_below(value: int, result: int) -> list[bytes]:
    return [_op(_AT_LEAST, value, 0, 1), _op(_RETURN, result)]


def _if_argument(number: int, place: int, tests: list[bytes]) -> list[bytes]:
    """Instructions on an argument of one call, which is allowed if they do not decide."""
    return [_op(_EQUAL, number, 0, len(tests) + 2), _op(_LOAD, place), *tests, _op(_RETURN, _ALLOW)]


def _op(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("HBBI", code, then, otherwise, value)
