"""What of a request reaches the tool, and what of its response reaches the browser.

The tool sees a request to `localhost`, as tools of one person expect: many refuse other hosts. The cookie of the proxy
is removed, and what only counts for one connection. A server in a pod is hostile to the proxy: what it sends is
bounded, and rewritten so that it concerns its own origin only.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
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
    """Where a session leads. `host`: what the tool is addressed as; `origin`: the session's own, as in this request."""

    host: bytes
    origin: bytes = b""
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


def target(raw_path: bytes, query: bytes, destination: Destination) -> bytes:
    """The path and the query for the tool. Raises BadRequest."""
    found = destination.prefix + raw_path + (b"?" + query if query else b"")
    if not _TARGET.fullmatch(found) or not raw_path.startswith(b"/") or len(found) > _MAX_TARGET_BYTES:
        raise BadRequest
    return found


def request_head(method: str, path: bytes, headers: Sequence[Header], destination: Destination, own: str) -> bytes:
    """The head of a request for the tool, without the end of its fields. Raises BadRequest."""
    if not _TOKEN.fullmatch(method):
        raise BadRequest
    lines = [method.encode() + b" " + path + b" HTTP/1.1"]
    lines += [name + b": " + value for name, value in forwarded(headers, destination, own)]
    return b"\r\n".join(lines) + b"\r\n"


def forwarded(headers: Sequence[Header], destination: Destination, own: str) -> Iterator[Header]:
    """The fields of a request for the tool; those of its body and of the websocket excepted. Raises BadRequest."""
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
    if (referer := one(headers, b"referer")).startswith(origin + b"/"):
        yield b"referer", local + referer.removeprefix(origin)
    demanded = destination.cookie
    cookies = [pair for key, pair in _pairs(headers) if key not in (own.encode(), demanded.partition(b"=")[0])]
    if cookies := [*cookies, *filter(None, [demanded])]:
        yield b"cookie", b"; ".join(cookies)
    if destination.secret:
        yield b"authorization", b"token " + destination.secret.encode()
    scheme, _, host = origin.partition(b"://")
    yield b"x-forwarded-host", host
    yield b"x-forwarded-proto", scheme


def response_headers(headers: Sequence[Header], destination: Destination, own: str) -> list[Header]:
    """The fields of a response for the browser."""
    named = _named_by_connection(headers)
    found = []
    for name, value in headers:
        if name in _HOP_BY_HOP or name in _NOT_BACK or name in named:
            continue
        if name == b"set-cookie":
            cookie = _host_only(value)
            if cookie.partition(b"=")[0].strip() == own.encode():
                continue
            found.append((name, cookie))
        elif name in (b"location", b"content-location"):
            found.append((name, _own_address(value, destination)))
        else:
            found.append((name, value))
    return found


def _host_only(cookie: bytes) -> bytes:
    """A cookie without `Domain`: a tool sets cookies of its own origin only."""
    parts = cookie.split(b";")
    attributes = [part for part in parts[1:] if part.partition(b"=")[0].strip().lower() != b"domain"]
    return b";".join([parts[0], *attributes])


def _own_address(address: bytes, destination: Destination) -> bytes:
    """An address of a redirect as the browser can use it: without the host, and without the prefix of the tool."""
    local = destination.local
    if address == local or address.startswith((local + b"/", local + b"?")):
        address = address.removeprefix(local)
        address = address if address.startswith(b"/") else b"/" + address
    prefix = destination.prefix
    if prefix and address.startswith(prefix + b"/"):
        address = address.removeprefix(prefix)
    return address


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
