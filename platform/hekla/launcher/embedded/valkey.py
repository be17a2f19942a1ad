"""Valkey as a child process. It has only wake-ups and caches, nothing on disk, so nothing is lost with it."""

import signal
import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from hekla.launcher.embedded.child import spawn
from hekla.launcher.embedded.programs import valkey_program

_SOCKET = "valkey.sock"
_OPTIONS = (
    *("--port", "0", "--unixsocketperm", "700", "--daemonize", "no"),
    *("--save", "", "--appendonly", "no"),
    *("--maxmemory", "256mb", "--maxmemory-policy", "noeviction"),  # a full queue refuses messages and never drops any
    *("--loglevel", "warning"),
    # Housekeeping each second, not ten times: its only work here. Messages and expired keys do not wait for it.
    *("--hz", "1"),
)


@dataclass(frozen=True)
class Valkey:
    """A server with its socket in the folder `run`."""

    run: Path
    program: Path = field(default_factory=valkey_program)
    stop_signal = signal.SIGTERM

    @property
    def socket(self) -> Path:
        """The path of its only socket."""
        return self.run / _SOCKET

    @property
    def url(self) -> str:
        """The VALKEY_URL of this server."""
        return self.url_at(self.run)

    @staticmethod
    def url_at(run: Path) -> str:
        """The VALKEY_URL of a server with its socket in `run`."""
        return f"unix://{quote(str(run / _SOCKET))}?db=0"

    def prepare(self) -> None:
        """Delete the socket that a killed server left, so that it does not look like a running server."""
        self.socket.unlink(missing_ok=True)

    def start(self, output: int) -> subprocess.Popen[bytes]:
        """Start the server, with its log on the file descriptor `output`."""
        argv: list[str | Path] = [self.program, *_OPTIONS, "--unixsocket", self.socket, "--dir", self.run]
        return spawn(argv, output=output)

    def is_ready(self, pid: int) -> bool:  # noqa: ARG002  (same signature as in Postgres)
        """Whether it answers a PING."""
        try:
            with socket.socket(socket.AF_UNIX) as line:
                line.settimeout(1.0)
                line.connect(str(self.socket))
                line.sendall(b"PING\r\n")
                return line.recv(64).startswith(b"+PONG")
        except OSError:
            return False
