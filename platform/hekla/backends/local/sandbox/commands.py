"""Commands in a running pod, beside its own. The pod's first process starts them, so they are in all of its namespaces,
control groups and filters, and end with it.

A client connects to the socket in the pod's folder, which is outside of the pod's reach, and sends one packet: a JSON
object with `argv`, `env` (added to that of the pod) and `size` (columns and rows of a terminal, or null without one).
The command's process answers with one packet that carries handles: of the terminal, or the other ends of its input,
output and errors. Later packets are `exit CODE`, or what failed, as the shim reports it. A pod that ends closes the
connection without either.
"""

import array
import contextlib
import fcntl
import json
import os
import select
import signal
import struct
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_SEQPACKET, SOL_SOCKET, socket  # `socket` itself takes 5 ms to import
from collections.abc import Callable, Mapping

MAX_REQUEST_BYTES = 64 * 1024
MAX_CONNECTIONS = 32
EXIT = "exit"
SET_SIZE = 0x5414
_SET_CONTROLLING = 0x540E
_BACKLOG = 8
Handles = tuple[int, int, int]
"""Standard input, output and errors."""


def listen(path: str) -> socket | None:
    """A socket at this path, which may be longer than the kernel takes at once; None on a full disk.

    It changes the working folder meanwhile, so no other thread may run.
    """
    before = os.open(".", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.chdir(os.path.dirname(path))
        listener = socket(AF_UNIX, SOCK_SEQPACKET)
        listener.bind(os.path.basename(path))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError:
        return None
    finally:
        os.fchdir(before)
        os.close(before)
    return listener


def pack_size(columns: int, rows: int) -> bytes:
    """The size of a terminal, as the kernel takes it."""
    return struct.pack("HHHH", rows, columns, 0, 0)


class CommandServer:
    """In the first process of a pod: starts commands, and reports their exit codes.

    `become`: turns this process into a command with this argv, environment and handles; errors go to the last handle.
    """

    def __init__(
        self, listener: socket, become: Callable[[list[str], Mapping[str, str], Handles, int], object]
    ) -> None:
        self._listener, self._become = listener, become
        self._waiting: dict[int, socket] = {}
        self._running: dict[int, socket] = {}
        self._wakes, writer = os.pipe()
        os.set_blocking(self._wakes, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)

    def serve(self) -> None:
        """Wait for a request or the end of a child, and start what is requested."""
        ready, _, _ = select.select([self._wakes, self._listener.fileno(), *self._waiting], [], [])
        if self._wakes in ready:
            os.read(self._wakes, 4096)
        if self._listener.fileno() in ready:
            self._accept()
        for handle in (one for one in ready if one in self._waiting):
            self._take(self._waiting.pop(handle))

    def report(self, pid: int, code: int) -> None:
        """Tell the client of this process, if it has one, with which exit code it ended."""
        if client := self._running.pop(pid, None):
            _send(client, f"{EXIT} {code}")

    def _accept(self) -> None:
        try:
            handle, _address = self._listener._accept()  # type: ignore[attr-defined]  # `accept` is of `socket`
        except OSError:  # the client has gone
            return
        client = socket(AF_UNIX, SOCK_SEQPACKET, 0, handle)
        client.setblocking(False)
        if len(self._waiting) < MAX_CONNECTIONS:
            self._waiting[handle] = client

    def _take(self, client: socket) -> None:
        try:
            packet = client.recv(MAX_REQUEST_BYTES)
            request = json.loads(packet) if packet else None
            if request is None:
                return
            if len(self._running) >= MAX_CONNECTIONS:
                raise ValueError(f"the pod has {MAX_CONNECTIONS} commands already")
            pid = os.fork()
        except (OSError, ValueError) as error:
            _send(client, f"fork 0 {error}")
            return
        if pid == 0:
            try:
                self._begin(client, request["argv"], request["env"], request["size"])
            finally:
                os._exit(127)
        self._running[pid] = client

    def _begin(self, client: socket, argv: list[str], env: Mapping[str, str], size: tuple[int, int] | None) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        client.setblocking(True)
        os.setsid()
        if size:
            terminal, end = os.openpty()
            fcntl.ioctl(end, SET_SIZE, pack_size(*size))
            fcntl.ioctl(end, _SET_CONTROLLING, 0)
            returned, handles = [terminal], (end, end, end)
        else:
            (source, typed), (output, sink), (errors, error_sink) = os.pipe(), os.pipe(), os.pipe()
            returned, handles = [typed, output, errors], (source, sink, error_sink)
        client.sendmsg([b"begun"], [(SOL_SOCKET, SCM_RIGHTS, array.array("i", returned))])
        for handle in returned:
            os.close(handle)
        self._become(argv, env, handles, client.fileno())


def _send(client: socket, text: str) -> None:
    """Send, unless the client has gone or does not read. The connection ends with the last reference to it."""
    with contextlib.suppress(OSError):
        client.send(text.encode(errors="replace"))
