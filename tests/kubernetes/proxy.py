"""A proxy between Hekla and an API server that injects the faults of networks and busy servers.

It records each request, lets `judge` decide about it, and forwards it or not. It streams answers, so that watches work.
"""

import contextlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
from tests.kubernetes.control_plane import ControlPlane

_HOP_BY_HOP = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})
_NAMED = 2  # path parts before a subresource: the resource and the object's name


class RequestFate(Enum):
    """What the proxy does with a request."""

    PASSED = "passed on"
    BUSY = "429"
    CONFLICT = "409"
    BROKEN = "500"
    CUT_BEFORE = "the connection ends before the server has it"
    CUT_AFTER = "the server has done it, and the connection ends before its answer"


_STATUS = {
    RequestFate.BUSY: ("TooManyRequests", 429),
    RequestFate.CONFLICT: ("Conflict", 409),
    RequestFate.BROKEN: ("InternalError", 500),
}
_NO_UPGRADE = ("ServiceUnavailable", 503)
"""For clients that watch through a WebSocket. They watch without one then."""


@dataclass
class ProxiedRequest:
    """One request. `status`: the server's answer, even if the client did not get it; 0 without an answer."""

    method: str
    path: str
    body: dict[str, Any]
    port: int
    fate: RequestFate = RequestFate.PASSED
    status: int = 0

    @property
    def kind(self) -> str:
        """The method and resource, such as `POST pods`, `POST pods/binding` or `DELETE services`."""
        parts = self._path_within_namespace()
        return f"{self.method} {'/'.join([parts[0], *parts[_NAMED:]])}"

    @property
    def name(self) -> str:
        """The name of the object; empty for a list."""
        parts = self._path_within_namespace()
        return parts[1] if len(parts) > 1 else str(self.body.get("metadata", {}).get("name", ""))

    @property
    def is_watch(self) -> bool:
        """Whether this is a watch, whose answer does not end."""
        return "watch=" in self.path

    @property
    def is_done(self) -> bool:
        """Whether the server carried it out."""
        return 200 <= self.status < 300

    @property
    def may_be_done(self) -> bool:
        """Whether the outcome is unknown: the server got the request, but its answer was lost."""
        return self.status == 0 and self.fate in (RequestFate.PASSED, RequestFate.CUT_AFTER)

    def _path_within_namespace(self) -> list[str]:
        parts = self.path.partition("?")[0].strip("/").split("/")
        head = parts.index("namespaces") + 2 if "namespaces" in parts else 2
        return parts[head:] or parts[-1:]  # for paths such as `/version`


@dataclass
class HeldRequest:
    """A request that the proxy holds until `release` is set."""

    request: ProxiedRequest | None = None
    caught: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)


class Proxy:
    """A proxy of one control plane, with its own address."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._upstream = httpx2.Client(
            base_url=plane.url,
            verify=ssl.create_default_context(cafile=str(plane.ca)),
            timeout=httpx2.Timeout(60.0, read=None),
            limits=httpx2.Limits(max_connections=None),
            trust_env=False,
        )
        self.requests: list[ProxiedRequest] = []
        self.judge: Callable[[ProxiedRequest], RequestFate] = lambda _: RequestFate.PASSED
        self._traps: list[tuple[Callable[[ProxiedRequest], bool], HeldRequest, bool]] = []
        self._held: list[HeldRequest] = []
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def listening(self) -> Iterator["Proxy"]:
        """Serve while the context is open."""
        self._server = _Server(("127.0.0.1", 0), _handler_of(self))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        folder = self._plane.ca.parent
        context.load_cert_chain(folder / "serving.pem", folder / "serving.key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.free()
            self._server.shutdown()
            self._server.server_close()  # running handlers keep their own connections, which must not be closed here

    @property
    def url(self) -> str:
        """Its address."""
        return f"https://127.0.0.1:{self._server.server_port}"

    def kubeconfig(self, token: str) -> dict[str, Any]:
        """The control plane's kubeconfig with the address of the proxy."""
        document = self._plane.kubeconfig(token)
        document["clusters"][0]["cluster"]["server"] = self.url
        return document

    def catch(self, which: Callable[[ProxiedRequest], bool], *, answered: bool) -> HeldRequest:
        """Hold the next matching request before it is sent, or with `answered` after its answer."""
        held = HeldRequest()
        with self._lock:
            self._traps.append((which, held, answered))
            self._held.append(held)
        return held

    def free(self) -> None:
        """Release all requests that are held, and remove all traps."""
        with self._lock:
            self._traps.clear()
        for held in self._held:
            held.release.set()

    def done(self, kind: str) -> list[ProxiedRequest]:
        """The requests of this kind that the server carried out, in order."""
        return [one for one in list(self.requests) if one.kind == kind and one.is_done]

    def may_be_done(self, kind: str) -> list[ProxiedRequest]:
        """The requests of this kind whose outcome is unknown."""
        return [one for one in list(self.requests) if one.kind == kind and one.may_be_done]

    # For the handler.

    def note(self, request: ProxiedRequest) -> RequestFate:
        """Record a request, hold it if it matches a trap, and return its fate."""
        with self._lock:
            request.fate = self.judge(request)
            self.requests.append(request)
        self._hold(request, answered=False)
        return request.fate

    @contextlib.contextmanager
    def answer_to(self, request: ProxiedRequest, content: bytes, headers: dict[str, str]) -> Iterator[httpx2.Response]:
        """Forward the request; a context with the server's answer."""
        with self._upstream.stream(request.method, request.path, content=content, headers=headers) as answer:
            request.status = answer.status_code
            self._hold(request, answered=True)
            yield answer

    def _hold(self, request: ProxiedRequest, *, answered: bool) -> None:
        with self._lock:
            found = next((trap for trap in self._traps if trap[2] == answered and trap[0](request)), None)
            if found is None:
                return
            self._traps.remove(found)
        held = found[1]
        held.request = request
        held.caught.set()
        held.release.wait(120)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors: clients disconnect at any time, and this proxy cuts connections on purpose."""


def _handler_of(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = ProxiedRequest(self.command, self.path, _document(content), self.client_address[1])
            fate = proxy.note(request)
            if "Upgrade" in self.headers:
                self._refuse(*_NO_UPGRADE)
            elif fate in _STATUS:
                self._refuse(*_STATUS[fate])
            elif fate is RequestFate.CUT_BEFORE:
                self.close_connection = True
            else:
                self._ask(request, content, fate)

        do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _pass_on

        def _ask(self, request: ProxiedRequest, content: bytes, fate: RequestFate) -> None:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
            try:
                with proxy.answer_to(request, content, headers) as answer:
                    if fate is RequestFate.CUT_AFTER:
                        self.close_connection = True
                    else:
                        self._tell(answer)
            except (httpx2.HTTPError, OSError):
                self.close_connection = True

        def _tell(self, answer: httpx2.Response) -> None:
            self.send_response(answer.status_code)
            for name, value in answer.headers.items():
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for chunk in answer.iter_raw():
                if chunk:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.write(b"0\r\n\r\n")

        def _refuse(self, reason: str, status: int) -> None:
            status_object = {
                "kind": "Status",
                "status": "Failure",
                "reason": reason,
                "code": status,
                "message": "Not now",
            }
            content = json.dumps(status_object).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            if reason == "TooManyRequests":
                self.send_header("Retry-After", "1")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Log nothing: tests read `requests`."""

    return Handler


def _document(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content) if content else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
