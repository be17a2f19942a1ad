"""A mail server and a receiver of webhooks that really listen, on loopback, and record what they receive."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Mailbox:
    """With `refuses`, every message gets a temporary failure."""

    port: int = 0
    refuses: bool = False
    messages: list[EmailMessage] = field(default_factory=list)


@dataclass
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Hook:
    """`status` is the response; with 302 it redirects to itself."""

    port: int = 0
    status: int = 200
    requests: list[Received] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"


@contextmanager
def mail_server() -> Iterator[Mailbox]:
    """As much of RFC 5321 as a client needs."""
    box = Mailbox()

    class Session(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.send("220 test")
            while line := self.rfile.readline():
                verb = line[:4].upper()
                if verb == b"DATA":
                    self.receive()
                elif verb == b"QUIT":
                    self.send("221 bye")
                    return
                else:
                    self.send("250 ok")

        def receive(self) -> None:
            self.send("354 go on")
            lines = iter(self.rfile.readline, b".\r\n")
            body = b"".join(line.removeprefix(b".") if line.startswith(b"..") else line for line in lines)
            if box.refuses:
                self.send("451 not now")
                return
            box.messages.append(message_from_bytes(body, policy=policy.default))  # type: ignore[arg-type]
            self.send("250 taken")

        def send(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

    with _serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session)) as port:
        box.port = port
        yield box


@contextmanager
def receiver() -> Iterator[Hook]:
    """Accepts POST requests."""
    hook = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hook.requests.append(Received(self.path, dict(self.headers), body))
            self.send_response(hook.status)
            if hook.status == 302:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Logs nothing to the terminal."""

    with _serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        hook.port = port
        yield hook


@contextmanager
def _serving(server: socketserver.TCPServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
