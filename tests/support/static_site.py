"""A site on this machine: the static files of Hekla, and documents that a test sets.

A browser caches what it serves. What a route of Playwright answers, it never caches.
"""

import mimetypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

STATIC = Path(__file__).parents[2] / "static"
Response = tuple[int, str]


class StaticSite(ThreadingHTTPServer):
    """Answers with a page, a part, or a file."""

    def __init__(self, policy: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.origin = f"http://127.0.0.1:{self.server_port}"
        self.policy = policy
        self.clear()

    def clear(self) -> None:
        self.html = ""
        self.files: dict[str, Path] = {}
        self.parts: dict[str, Callable[[str | None], Response]] = {}
        self.requests: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: StaticSite
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with the part or the file of this path, or else with the page."""
        path = urlsplit(self.path).path
        self.server.requests.append(path)
        file = self.server.files.get(path, STATIC / path.lstrip("/"))
        if part := self.server.parts.get(path):
            status, html = part(self.headers.get("HX-Request"))
            self._answer(status, html.encode(), {"Content-Type": "text/html"})
        elif file.is_file():
            cached = {"Cache-Control": "max-age=3600"} if path not in self.server.files else {}
            self._answer(200, file.read_bytes(), {"Content-Type": mimetypes.guess_type(path)[0] or ""} | cached)
        else:
            headers = {"Content-Type": "text/html", "Content-Security-Policy": self.server.policy}
            self._answer(200, self.server.html.encode(), headers)

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words: object) -> None:
        """Say nothing."""


@contextmanager
def serving(policy: str) -> Iterator[StaticSite]:
    """A site while the context is open."""
    with StaticSite(policy) as site:
        Thread(target=site.serve_forever, daemon=True).start()
        yield site
        site.shutdown()
