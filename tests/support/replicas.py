"""Two web processes of one console, real ones, on the database of the test that starts them."""

import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.workers import PATIENCE_SECONDS, Workers
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

ADDRESS = "127.0.0.1:7999"
"""The address of the console for its users. The load balancer behind it is the test, which names a replica."""


@dataclass(frozen=True)
class ReplicaResponse:
    """Of a request by HTTP. `cookie`: the first that it sets, without its options."""

    status: int
    text: str
    cookie: str


class Replicas(Workers):
    """A browser or a program reaches one of them by each connection. `ports`: theirs, by name."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.ports = {"web-1": free_port(), "web-2": free_port()}
        self._commands = {name: ("hekla.launcher.web_server", "--port", str(port)) for name, port in self.ports.items()}

    @contextmanager
    def ready(self) -> Iterator["Replicas"]:
        """Runs both until the end of the block."""
        with self.at_work():
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not all(self._answers(port) for port in self.ports.values()):
                assert time.monotonic() < deadline, self.output()
                time.sleep(0.05)
            yield self

    def request(
        self, name: str, method: str, path: str, body: str = "", host: str = ADDRESS, **headers: str
    ) -> ReplicaResponse:
        """What this replica answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[name], timeout=20)
        with closing(connection):
            fields = {"Host": host, "Content-Type": "application/json"} | headers
            connection.request(method, path, body=body or None, headers=fields)
            found = connection.getresponse()
            cookie = (found.headers["Set-Cookie"] or "").partition(";")[0]
            return ReplicaResponse(found.status, found.read().decode(), cookie)

    def open(self, name: str, path: str, cookie: str, host: str = ADDRESS) -> ClientConnection:
        """A websocket of a page of this host at this replica."""
        return connect(
            f"ws://{host}{path}",
            origin=Origin(f"http://{host}"),
            additional_headers={"Cookie": cookie},
            sock=socket.create_connection(("127.0.0.1", self.ports[name])),
            compression=None,
        )

    def _answers(self, port: int) -> bool:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
            try:
                connection.request("GET", "/healthz", headers={"Host": ADDRESS})
                return connection.getresponse().status == http.client.OK
            except OSError:
                return False


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
