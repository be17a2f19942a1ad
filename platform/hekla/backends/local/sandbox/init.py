"""The first process of a pod's PID namespace: it starts the pod's process, reaps, and reports the exit code.

The kernel ends all other processes of the namespace with it. It is out of the pod's reach: the kernel ignores signals
from inside that it does not handle, and its memory cannot be read there.
"""

import os
import signal
import struct
from collections.abc import Callable

from hekla.backends.local.sandbox import landlock, root, seccomp, system
from hekla.backends.local.sandbox.commands import CommandServer
from hekla.backends.local.sandbox.order import LANDLOCK, NAMESPACES, READ_ONLY, SECCOMP, WRITABLE, SandboxOrder

_CODE = struct.Struct("i")
_LAST_HANDLE = 256
"""The shim has few handles; the pod's process closes them when it begins its command."""


def prepare(order: SandboxOrder) -> None:
    """In the shim: let its next child begin a PID namespace. Without root, this needs a user namespace first.

    That child must be the last one: a PID namespace ends with its first process.
    """
    if NAMESPACES in order["layers"]:
        if os.geteuid() != 0:
            _enter_user_namespace()
        system.unshare(system.NEW_PID)


def enter(order: SandboxOrder) -> None:
    """In the child of the shim: enter the other namespaces, and give up all rights to them."""
    system.prctl(system.PR_SET_DUMPABLE, 0)
    if NAMESPACES not in order["layers"]:
        return
    os.get_exec_path({})  # loads a module, and so do codecs: afterwards the interpreter is out of reach
    system.unshare(system.NEW_NS | system.NEW_IPC)
    root.enter(order)
    if order["uid"]:
        os.setgroups([])
        os.setresgid(order["uid"], order["uid"], order["uid"])
        os.setresuid(order["uid"], order["uid"], order["uid"])
        system.prctl(system.PR_SET_DUMPABLE, 1)  # or its own files in /proc belong to root
        _enter_user_namespace()
        system.prctl(system.PR_SET_DUMPABLE, 0)


def restrict(order: SandboxOrder) -> None:
    """In the first process of the pod, or its only one: what is in force also for all that it starts."""
    system.prctl(system.PR_SET_NO_NEW_PRIVS, 1)
    if LANDLOCK in order["layers"]:
        read_only = [inside for mode, _path, inside in order["paths"] if mode == READ_ONLY]
        writable = [inside for mode, _path, inside in order["paths"] if mode == WRITABLE]
        listable = ["/"] if NAMESPACES in order["layers"] else []
        landlock.restrict(read_only, [*writable, "/dev/shm"], ["/dev", "/proc"], listable)  # noqa: S108
    if SECCOMP in order["layers"]:
        seccomp.restrict()


def run(start: Callable[[], None], result: int, listener: int, serve: Callable[[], CommandServer] | None) -> None:
    """As the first process: start the pod's process by `start`, which never returns, and report its exit code.

    `serve`: makes the server of further commands at the socket `listener`; None and -1 without one.
    """
    leader = os.fork()
    if leader == 0:
        start()
    for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1, 2):
        os.dup2(nothing, handle)
    first, second = sorted((result, max(listener, 2)))
    for begin, end in ((3, first), (first + 1, second), (second + 1, _LAST_HANDLE)):
        os.closerange(begin, end)
    commands = serve() if serve else None
    while True:  # reap before the first wait: a process can have ended before anything noted its signal
        while (ended := os.waitpid(-1, os.WNOHANG if commands else 0))[0]:
            code = os.waitstatus_to_exitcode(ended[1])
            if ended[0] == leader:
                os.write(result, _CODE.pack(code))
                os._exit(0)
            if commands:
                commands.report(ended[0], code)
        if commands:
            commands.serve()


def exit_code(result: int, own: int) -> int:
    """The exit code that the first process reported, or its own if it was killed before."""
    report = os.read(result, _CODE.size)
    return int(_CODE.unpack(report)[0]) if len(report) == _CODE.size else own


def _enter_user_namespace() -> None:
    """Enter a user namespace in which only the own user and group exist."""
    uid, gid = os.geteuid(), os.getegid()
    system.unshare(system.NEW_USER)
    for name, text in (("setgroups", "deny"), ("gid_map", f"{gid} {gid} 1"), ("uid_map", f"{uid} {uid} 1")):
        handle = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(handle, text.encode())
        os.close(handle)
