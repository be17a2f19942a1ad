"""Valkey as a child process. It holds only wake-ups and caches: nothing of it is on the disk, nothing is missed."""

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
    *("--maxmemory", "256mb", "--maxmemory-policy", "noeviction"),  # a full queue refuses, it never forgets
    *("--loglevel", "warning"),
)


@dataclass(frozen=True)
class Valkey:
    """A server whose socket lies in `run`."""

    run: Path
    program: Path = field(default_factory=valkey_program)
    stop_signal = signal.SIGTERM

    @property
    def socket(self) -> Path:
        """Its only door."""
        return self.run / _SOCKET

    @property
    def url(self) -> str:
        """What VALKEY_URL says of this server."""
        return self.url_at(self.run)

    @staticmethod
    def url_at(run: Path) -> str:
        """What VALKEY_URL says of a server whose socket lies in `run`."""
        return f"unix://{quote(str(run / _SOCKET))}?db=0"

    def prepare(self) -> None:
        """Take away the door that a killed server left open, so that no one takes it for an answer."""
        self.socket.unlink(missing_ok=True)

    def start(self, output: int) -> subprocess.Popen[bytes]:
        """Start it; its log goes to the descriptor `output`."""
        argv: list[str | Path] = [self.program, *_OPTIONS, "--unixsocket", self.socket, "--dir", self.run]
        return spawn(argv, output=output)

    def is_ready(self, pid: int) -> bool:  # noqa: ARG002  (as Postgres asks it)
        """Whether it answers."""
        try:
            with socket.socket(socket.AF_UNIX) as line:
                line.settimeout(1.0)
                line.connect(str(self.socket))
                line.sendall(b"PING\r\n")
                return line.recv(64).startswith(b"+PONG")
        except OSError:
            return False
