"""What of a request reaches the tool, and what of its response reaches the browser.

The tool sees a request to `localhost`, as tools of one person expect: many refuse other hosts. The cookie of the proxy
is removed, and what only counts for one connection. A server in a pod is hostile to the proxy: what it sends is
bounded, and rewritten so that it concerns its own origin only.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

Header = tuple[bytes, bytes]
_HOP_BY_HOP = frozenset({
    *(b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"proxy-authorization"),
    *(b"te", b"trailer", b"transfer-encoding", b"upgrade"),
})  # fmt: skip
_OURS = frozenset({b"host", b"origin", b"referer", b"cookie", b"content-length", b"expect", b"forwarded", b"x-real-ip"})
_NOT_BACK = frozenset({
    *(b"alt-svc", b"clear-site-data", b"date", b"public-key-pins"),
    *(b"x-accel-redirect", b"x-lighttpd-send-file", b"x-reproxy-url", b"x-sendfile"),
})  # fmt: skip
"""Of a response: `Alt-Svc` would send the browser to another server; `Clear-Site-Data` deletes cookies of the domains
above too; the date is set by the server of the console; the last ones would make a proxy before it send another page.
"""
_NOT_BACK_TO_ALL = frozenset({
    *(b"nel", b"report-to", b"service-worker-allowed", b"strict-transport-security", b"use-as-dictionary"),
    *(b"sec-session-registration", b"secure-session-registration"),
})  # fmt: skip
"""Of a response on a host that sessions share: what browsers keep for all pages of the host."""
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,32}")
_FIELD = re.compile(rb"[a-z0-9!#$%&'*+.^_`|~-]{1,200}")
_TARGET = re.compile(rb"/[\x21-\x7e\x80-\xff]*")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_WEBSOCKET = b"sec-websocket-"
_MAX_TARGET_BYTES = 32 * 1024


class BadRequest(Exception):
    """The request cannot be passed on."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a session leads. `host`: what the tool is addressed as; `origin`: the session's own, as in this request.

    `mount`: the path of the session there, if it shares the origin with others. Requests have lost it already.
    """

    host: bytes
    origin: bytes = b""
    mount: bytes = b""
    secret: str = ""
    prefix: bytes = b""
    """Put before each path, for a tool that demands it instead of a header."""
    cookie: bytes = b""
    """A name and a value. Put among the cookies, for a tool that demands it there."""

    @property
    def local(self) -> bytes:
        """The origin as the tool sees it."""
        return b"http://" + self.host


def one(headers: Iterable[Header], name: bytes) -> bytes:
    """The value of a header; empty if there is none, or several."""
    found = [value for key, value in headers if key == name]
    return found[0] if len(found) == 1 else b""


def own_cookie(headers: Iterable[Header], name: str) -> str:
    """The cookie of the proxy; empty if there is none. Of several, none is trusted."""
    found = [value for key, value in _cookies(headers) if key == name.encode()]
    return found[0].decode("latin-1") if len(found) == 1 else ""


def is_foreign(method: str, headers: Sequence[Header], origin: bytes) -> bool:
    """Whether another site may have made this request. Only a person who follows a link comes from one."""
    site = one(headers, b"sec-fetch-site")
    if site not in (b"", b"same-origin", b"none"):
        is_link = one(headers, b"sec-fetch-mode") == b"navigate" and one(headers, b"sec-fetch-dest") == b"document"
        return not (is_link and method in ("GET", "HEAD"))
    named = [value for key, value in headers if key == b"origin"]
    if named:
        return named != [origin]
    return method not in _SAFE and site != b"same-origin"


def is_service_worker(headers: Iterable[Header]) -> bool:
    """Whether the browser asks for the script of a service worker: it would answer for pages of other sessions."""
    worker = (b"sec-fetch-dest", b"serviceworker")
    return any(name == b"service-worker" or (name, value) == worker for name, value in headers)


def target(raw_path: bytes, query: bytes, destination: Destination) -> bytes:
    """The path and the query for the tool. Raises BadRequest."""
    found = destination.prefix + raw_path + (b"?" + query if query else b"")
    if not _TARGET.fullmatch(found) or not raw_path.startswith(b"/") or len(found) > _MAX_TARGET_BYTES:
        raise BadRequest
    return found


def request_head(
    method: str, path: bytes, headers: Sequence[Header], destination: Destination, own: Collection[bytes]
) -> bytes:
    """The head of a request for the tool, without the end of its fields. Raises BadRequest."""
    if not _TOKEN.fullmatch(method):
        raise BadRequest
    lines = [method.encode() + b" " + path + b" HTTP/1.1"]
    lines += [name + b": " + value for name, value in forwarded(headers, destination, own)]
    return b"\r\n".join(lines) + b"\r\n"


def forwarded(headers: Sequence[Header], destination: Destination, own: Collection[bytes]) -> Iterator[Header]:
    """The fields of a request for the tool; those of its body and of the websocket excepted. Raises BadRequest.

    `own`: the names of the console's cookies, which the tool does not get.
    """
    local, origin = destination.local, destination.origin
    named = _named_by_connection(headers)
    yield b"host", destination.host
    for name, value in headers:
        if _CONTROL.search(value) or not _FIELD.fullmatch(name):
            raise BadRequest
        if name in _HOP_BY_HOP or name in _OURS or name in named or name.startswith((b"x-forwarded-", _WEBSOCKET)):
            continue
        if name == b"authorization" and destination.secret:
            continue
        yield name, value
    if one(headers, b"origin"):
        yield b"origin", local
    if (referer := one(headers, b"referer")).startswith(origin + destination.mount + b"/"):
        yield b"referer", local + referer.removeprefix(origin + destination.mount)
    demanded = destination.cookie
    cookies = [pair for key, pair in _pairs(headers) if key not in {*own, demanded.partition(b"=")[0]}]
    if cookies := [*cookies, *filter(None, [demanded])]:
        yield b"cookie", b"; ".join(cookies)
    if destination.secret:
        yield b"authorization", b"token " + destination.secret.encode()
    scheme, _, host = origin.partition(b"://")
    yield b"x-forwarded-host", host
    yield b"x-forwarded-proto", scheme
    if destination.mount:
        yield b"x-forwarded-prefix", destination.mount


def response_headers(headers: Sequence[Header], destination: Destination, own: Collection[bytes]) -> list[Header]:
    """The fields of a response for the browser. `own`: the names of cookies that the tool must not set."""
    named = _named_by_connection(headers) | (_NOT_BACK_TO_ALL if destination.mount else frozenset())
    found = []
    for name, value in headers:
        if name in _HOP_BY_HOP or name in _NOT_BACK or name in named:
            continue
        if name == b"set-cookie":
            cookie = _confined(value, destination.mount)
            if cookie and cookie.partition(b"=")[0].strip() not in own:
                found.append((name, cookie))
        elif name in (b"location", b"content-location"):
            found.append((name, _own_address(value, destination)))
        else:
            found.append((name, value))
    return found


def _confined(cookie: bytes, mount: bytes) -> bytes:
    """A cookie without `Domain`, and below the path of its session if the session has one. Empty if that cannot be.

    Cookies without a name would be sent as others; browsers take those that begin with `__Host-` for a whole host only.
    """
    first, *others = cookie.split(b";")
    dropped = (b"domain", b"path") if mount else (b"domain",)
    attributes = [part for part in others if part.partition(b"=")[0].strip().lower() not in dropped]
    if not mount:
        return b";".join([first, *attributes])
    name, sign, _value = first.partition(b"=")
    if not sign or not name.strip() or name.strip().lower().startswith(b"__host-") or _CONTROL.search(cookie):
        return b""
    paths = [part.partition(b"=")[2].strip() for part in others if part.partition(b"=")[0].strip().lower() == b"path"]
    path = paths[-1] if paths and paths[-1].startswith(b"/") else b"/"  # of several, browsers take the last one
    return b";".join([first, *attributes, b" Path=" + _below(path, mount)])


def _own_address(address: bytes, destination: Destination) -> bytes:
    """An address of a redirect as the browser can use it: without the host, and without the prefix of the tool.

    On a host that sessions share, an address there is below the path of the session, whatever the tool calls it.
    """
    for local in (destination.local, destination.origin) if destination.mount else (destination.local,):
        if address == local or address.startswith((local + b"/", local + b"?")):
            address = address.removeprefix(local)
            address = address if address.startswith(b"/") else b"/" + address
            break
    prefix = destination.prefix
    if prefix and address.startswith(prefix + b"/"):
        address = address.removeprefix(prefix)
    return _below(address, destination.mount) if address.startswith((b"/", b"\\")) else address


def _below(path: bytes, mount: bytes) -> bytes:
    """A path of the host below the path of the session. Some tools put it there themselves."""
    return path if path == mount or path.startswith(mount + b"/") else mount + path


def _named_by_connection(headers: Iterable[Header]) -> frozenset[bytes]:
    values = [value for name, value in headers if name == b"connection"]
    return frozenset(word.strip().lower() for value in values for word in value.split(b","))


def _pairs(headers: Iterable[Header]) -> Iterator[tuple[bytes, bytes]]:
    """Each cookie of a request: its name, and the whole pair."""
    for name, value in headers:
        if name == b"cookie":
            for part in value.split(b";"):
                pair = part.strip()
                if pair:
                    yield pair.partition(b"=")[0].strip(), pair


def _cookies(headers: Iterable[Header]) -> Iterator[Header]:
    return ((name, pair.partition(b"=")[2].strip()) for name, pair in _pairs(headers))
