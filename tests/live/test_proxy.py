"""The proxy of sessions over real servers: what passes, what is refused, and what ends with the right to it."""

import hashlib
import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People, make_people
from tests.support import tool_server
from tests.support.served import served
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.scopes import Scope
from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs.models import Pod
from hekla.apps.sharing import services as sharing
from hekla.apps.sharing.models import Guest
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Membership
from hekla.apps.workbench import entry, services
from hekla.apps.workbench.models import ToolSession
from hekla.backends.local.sockets import open_socket
from hekla.domain.errors import Forbidden, Refused
from hekla.domain.sharing import GuestRole
from hekla.domain.tools import Tool
from hekla.lib import clock
from hekla.live import guard
from hekla.live.proxy import admissions, requests
from hekla.live.proxy.hosts import SessionHosts

BOTH = pytest.mark.parametrize("place", ["own host", "shared host"], indirect=True)
"""With a host for each session, and with paths of one host."""
SHARED_HOST = "tools.localhost"
REACHED: list[str] = []
"""Paths that reached the console instead of the proxy."""


async def console(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """What is behind the proxy: it must never get a request for a session."""
    if scope["type"] == "lifespan":
        await tool_server.application(scope, receive, send)
        return
    REACHED.append(scope["path"])
    await send({"type": "http.response.start", "status": 418, "headers": []})
    await send({"type": "http.response.body", "body": b"console"})


@dataclass
class ProxySetup:
    """A session of Alice with a tool that runs, and the proxy before it."""

    people: People
    pod: Pod
    port: int
    tool_port: int
    session: ToolSession
    browser: Client
    cookie: str = ""

    @property
    def host(self) -> str:
        return f"{settings.WORKBENCH_HOST or f'{self.session.slug}.localhost'}:{self.port}"

    @property
    def mount(self) -> str:
        return entry.mount(self.session.slug)

    @property
    def entering(self) -> dict[str, str]:  # on a shared host, a browser sends a ticket by the form of a page there
        return {"method": "POST", "origin": f"http://{self.host}"} if self.mount else {}

    def invite(self, person: User, role: GuestRole, *, accept: bool = True) -> Guest:
        """An invitation of this person to Alice's session."""
        facts = {"hours": 1, "user": self.people.alice, "now": clock.now()}
        guest = sharing.invite(self.session, person.username, role, **facts)
        if accept:
            sharing.accept(guest, user=person, now=clock.now())
        return guest

    def guest_ticket(self, browser: Client, guest: Guest) -> str:
        """The ticket on the page that leads an invited person to the session; empty if they are not led there."""
        found = browser.post(reverse("sharing:enter", args=[guest.uid]))
        return found.headers.get("Refresh", "").rpartition("?ticket=")[2]

    def ticket(self, session: ToolSession | None = None) -> str:
        login = self.browser.session.session_key
        return entry.issue_ticket(session or self.session, login=login, token=None)

    def enter(self, ticket: str, host: str = "") -> http.client.HTTPResponse:
        found = self.get(f"{entry.ENTER_PATH}?ticket={ticket}", host=host, cookie="", **self.entering)
        if lines := found.headers.get_all("set-cookie"):
            self.cookie = "; ".join(line.partition(";")[0] for line in lines)
        return found

    def get(self, path: str, *, method: str = "GET", body: Any = None, **more: str) -> http.client.HTTPResponse:
        """A request as a browser makes it. `at`: instead of the session's path; others: instead of its headers."""
        headers = {"host": more.pop("host", "") or self.host, "cookie": more.pop("cookie", self.cookie)}
        path = more.pop("at", self.mount) + path
        headers |= {name.replace("_", "-"): value for name, value in more.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path, body=body, headers=headers)
        found = connection.getresponse()
        self.last = connection
        return found

    def socket(self, path: str = "/echo", origin: str = "", **more: Any) -> ClientConnection:
        headers = {"Cookie": more.pop("cookie", self.cookie)}
        return connect(
            f"ws://{self.host}{self.mount}{path}",
            origin=origin or f"http://{self.host}",  # type: ignore[arg-type]
            additional_headers=headers,
            sock=socket.create_connection(("127.0.0.1", self.port)),
            compression=None,
            **more,
        )

    def raw(self, request: bytes) -> bytes:
        """The response to these bytes."""
        with closing(socket.create_connection(("127.0.0.1", self.port), timeout=2)) as client:
            request = re.sub(rb"^(\w+) /", rb"\1 %b/" % self.mount.encode(), request)
            client.sendall(request.replace(b"HOST", self.host.encode()).replace(b"COOKIE", self.cookie.encode()))
            found = b""
            try:
                while data := client.recv(65536):
                    found += data
            except OSError:
                pass
            return found


@pytest.fixture
def place(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[ProxySetup]:
    if getattr(request, "param", "") == "shared host":
        monkeypatch.setattr(settings, "WORKBENCH_HOST", SHARED_HOST)
    monkeypatch.setattr(guard, "EVERY_SECONDS", 0.2)
    monkeypatch.setattr(admissions, "LOOK_EVERY_SECONDS", 0.2)
    monkeypatch.setattr(admissions, "VALID_SECONDS", 0.2)
    people = make_people()
    Cluster.objects.update(kind="local")
    job = people.submit("served")
    common = {"job": job, "task": "main", "index": 0, "version": 1, "slot": 1, "created_at": clock.now()}
    pod = Pod.objects.create(**common, attempt=1, address="127.0.0.1", phase="running")
    browser = Client()
    browser.force_login(people.alice, backend="django.contrib.auth.backends.ModelBackend")
    with served(SessionHosts(console), tool_server.application) as (port, tool_port):

        class Ports:
            port_forwarding = property(lambda self: self)

            def connect(self, _key: object, number: int) -> Any:
                return open_socket("127.0.0.1", number)

        monkeypatch.setattr(admissions, "backend_of", lambda _pod: Ports())
        session, _is_new = services.open_session(pod.pk, Tool.PORT, tool_port, user=people.alice, now=clock.now())
        REACHED.clear()
        yield ProxySetup(people, pod, port, tool_port, session, browser)
        assert REACHED == []


def received_by_tool(found: http.client.HTTPResponse) -> dict[str, Any]:
    assert found.status == 200, found.read()
    return json.loads(found.read())


@BOTH
def test_requests_pass_and_the_tool_learns_nothing_of_the_console(place: ProxySetup) -> None:
    entered = place.enter(place.ticket())
    assert (entered.status, entered.headers["location"]) == (303, f"{place.mount}/")
    line = entered.headers["set-cookie"]
    assert f"; Path={place.mount}/; HttpOnly; SameSite=Lax" in line
    assert "Domain" not in line
    cookies = f"a=1; {place.cookie}; {settings.SESSION_COOKIE_NAME}=x; b=2"
    found = received_by_tool(
        place.get(
            "/headers?x=%20y", cookie=cookies, authorization="Bearer own", referer=f"http://{place.host}{place.mount}/p?q",
            x_forwarded_for="6.6.6.6", x_forwarded_host="evil", x_forwarded_prefix="/evil", forwarded="for=6.6.6.6",
            connection="x-secret", x_secret="1", te="trailers", range="bytes=0-5",
        )
    )  # fmt: skip
    fields = [(name, value) for name, value in found["headers"] if name != "accept-encoding"]
    assert (found["method"], found["path"], found["query"]) == ("GET", "/headers", "x=%20y")
    assert sorted(fields) == [
        ("authorization", "Bearer own"),
        ("cookie", "a=1; b=2"),
        ("host", f"localhost:{place.tool_port}"),
        ("range", "bytes=0-5"),
        ("referer", f"http://localhost:{place.tool_port}/p?q"),
        ("x-forwarded-host", place.host),
        *([("x-forwarded-prefix", place.mount)] if place.mount else []),
        ("x-forwarded-proto", "http"),
    ]
    page = place.get("/")
    assert page.read() == tool_server.PAGE
    assert page.headers["set-cookie"] == f"a=b; Path={place.mount}/"  # without the domain
    assert "content-security-policy" not in page.headers
    assert place.get("/away").headers["location"] == f"{place.mount}/there?x=1"
    assert place.get("/nothing").status == 204
    assert ((head := place.get("/", method="HEAD")).status, head.read()) == (200, b"")
    for path in () if place.mount else ("//headers", "/a/../headers", "/%2e%2e/x", "http://evil.example/headers"):
        place.get(path).read()  # whatever the tool makes of it: it goes to the tool
    assert place.enter("").status == 403
    assert place.get(f"{entry.ENTER_PATH}?ticket=used", **place.entering).status == 303  # the cookie is still good


@BOTH
def test_bodies_are_streamed_both_ways(place: ProxySetup) -> None:
    place.enter(place.ticket())
    data = bytes(range(256)) * 4096 * 8
    digest = hashlib.sha256(data).hexdigest().encode()
    own = f"http://{place.host}"
    whole = place.get("/upload", method="POST", body=data, origin=own)
    assert whole.read() == b"%d %s" % (len(data), digest)
    chunked = place.get("/upload", method="PUT", body=iter([data[:99999], data[99999:]]), origin=own)
    assert chunked.read() == b"%d %s" % (len(data), digest)
    empty = place.get("/upload", method="POST", origin=own)
    assert empty.read().startswith(b"0 ")
    events = place.get("/events")
    assert events.read(13) == b"data: first\n\n"  # while the response goes on
    place.last.close()


@BOTH
def test_websocket_passes_text_bytes_subprotocols_and_closes(place: ProxySetup) -> None:
    place.enter(place.ticket())
    with place.socket(subprotocols=["v1", "v2"]) as opened:  # type: ignore[list-item]
        assert opened.subprotocol == "v1"
        opened.send("hi")
        assert opened.recv(5) == "echo hi"
        opened.send(b"x" * 300_000)
        assert opened.recv(5) == b"x" * 300_000
        opened.send("close")
        with pytest.raises(ConnectionClosed) as closed_by_tool:
            opened.recv(5)
    assert closed_by_tool.value.rcvd.code == 4001
    with pytest.raises(InvalidStatus):
        place.socket("/refused")


def test_only_the_right_ticket_and_cookie_enter(place: ProxySetup) -> None:
    other, _is_new = services.open_session(place.pod.pk, Tool.PORT, 9, user=place.people.alice, now=clock.now())
    other_host = f"{other.slug}.localhost:{place.port}"
    ticket = place.ticket()
    assert place.enter(ticket, host=other_host).status == 403  # of another session
    assert place.enter(ticket).status == 403  # and used by that
    good = place.ticket()
    assert place.enter(good).status == 303
    assert place.get(f"{entry.ENTER_PATH}?ticket={good}", cookie="").status == 403  # twice
    mine, stolen = place.cookie, place.cookie.partition("=")[2]
    name = entry.cookie_name()
    refused = {
        "no cookie": {"cookie": ""},
        "of another session": {"host": other_host},
        "damaged": {"cookie": f"{name}={stolen[:-9]}AAAAAAAA="},
        "twice": {"cookie": f"{mine}; {mine}"},
        "unknown slug": {"host": f"{'a' * 26}.localhost:{place.port}"},
        "the console's": {"cookie": f"hekla_session={place.browser.session.session_key}"},
    }
    for why, change in refused.items():
        found = place.get("/headers", **change)
        assert (found.status, b"Open this session from the console" in found.read()) == (403, True), why
    for host in ("localhost", "127.0.0.1", f"x.{place.host}", "short.localhost", f"{other.slug}.localhost.evil.org"):
        assert place.get("/", host=host).read() == b"console", host
    REACHED.clear()


@BOTH
def test_requests_of_other_sites_are_refused(place: ProxySetup) -> None:
    place.enter(place.ticket())
    own, evil = f"http://{place.host}", "http://evil.example"
    cases: list[tuple[int, str, dict[str, str]]] = [
        (200, "GET", {}),
        (200, "GET", {"sec_fetch_site": "same-origin"}),
        (200, "GET", {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}),
        (403, "GET", {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe"}),
        (403, "GET", {"sec_fetch_site": "same-site", "sec_fetch_mode": "no-cors", "sec_fetch_dest": "image"}),
        (403, "POST", {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}),
        (403, "GET", {"origin": evil}),
        (403, "POST", {"origin": evil}),
        (403, "POST", {"origin": "null"}),
        (403, "POST", {}),
        (200, "POST", {"origin": own}),
        (200, "DELETE", {"sec_fetch_site": "same-origin"}),
    ]
    for status, method, headers in cases:
        assert place.get("/headers", method=method, **headers).status == status, (method, headers)
    for origin in (evil, f"http://localhost:{place.port}", f"https://{place.host}", "null"):
        with pytest.raises(InvalidStatus):
            place.socket(origin=origin)
    with pytest.raises(InvalidStatus):
        place.socket(cookie="")


@BOTH
def test_requests_that_smuggle_others_are_refused(place: ProxySetup) -> None:
    place.enter(place.ticket())
    head = b"Host: HOST\r\nConnection: close\r\nCookie: COOKIE\r\nOrigin: http://HOST\r\n"
    inner = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    size = b"%d" % len(inner)
    attacks = {
        "CL and TE": b"POST /upload HTTP/1.1\r\n%bContent-Length: %b\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%b",
        "TE twice": b"POST /upload HTTP/1.1\r\n%bTransfer-Encoding: x\r\nTransfer-Encoding: chunked\r\nX: %b\r\n\r\n%b",
        "CL twice": b"POST /upload HTTP/1.1\r\n%bContent-Length: 0\r\nContent-Length: %b\r\n\r\n%b",
        "CL with a sign": b"POST /upload HTTP/1.1\r\n%bContent-Length: +%b\r\n\r\n%b",
        "space before the colon": b"POST /upload HTTP/1.1\r\n%bContent-Length : %b\r\n\r\n%b",
        "two hosts": b"GET / HTTP/1.1\r\n%bHost: localhost\r\nX: %b\r\n\r\n",
        "no path": b"GET * HTTP/1.1\r\n%bX: %b\r\n\r\n",
        "zero byte": b"GET / HTTP/1.1\r\n%bX: a\0b%b\r\n\r\n",
        "bare CR": b"GET / HTTP/1.1\r\n%bX: a\rY: %b\r\n\r\n",
    }
    for why, request in attacks.items():
        found = place.raw(request % ((head, size, inner) if request.count(b"%b") == 3 else (head, size)))
        assert found.startswith(b"HTTP/1.1 4"), (why, found[:300])
        assert b"smuggled" not in found, why


@BOTH
def test_everything_ends_with_the_right_to_it(place: ProxySetup) -> None:
    member, ada = place.people.bob, accounts.actor_of(place.people.ada)
    tenancy.change_role(place.people.lab, member.pk, "admin", actor=ada, now=clock.now())
    takers = {
        "session ended": lambda: services.end_session(place.session, user=place.people.ada, now=clock.now()),
        "pod ended": lambda: Pod.objects.update(phase="failed"),
        "signed out": lambda: Session.objects.all().delete(),
        "person deactivated": lambda: type(member).objects.filter(pk=place.people.alice.pk).update(is_active=False),
        "left the tenant": lambda: tenancy.remove_member(
            place.people.lab, place.people.alice.pk, actor=ada, now=clock.now()
        ),
    }
    for why, take in takers.items():
        place.browser.force_login(place.people.alice, backend="django.contrib.auth.backends.ModelBackend")
        place.enter(place.ticket())
        with place.socket() as opened:
            opened.send("hi")
            assert opened.recv(5) == "echo hi", why
            events = place.get("/events")
            assert events.read(13) == b"data: first\n\n"
            take()
            with pytest.raises(ConnectionClosed) as closed:
                opened.recv(5)
            assert closed.value.rcvd.code == 1001, why
            with pytest.raises(http.client.IncompleteRead):
                events.read()
        assert place.get("/headers").status == 403, why
        ToolSession.objects.update(ended_at=None)
        Pod.objects.update(phase="running")
        type(member).objects.update(is_active=True)


def test_invited_person_enters_with_a_cookie_of_their_own(place: ProxySetup) -> None:
    bob, browser = place.people.bob, Client()
    hers_in_the_tenant = Membership.objects.filter(user=place.people.alice)
    browser.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    with pytest.raises(Refused, match="cannot keep an observer from typing"):
        place.invite(bob, GuestRole.OBSERVER)
    guest = place.invite(bob, GuestRole.PEER, accept=False)
    assert place.guest_ticket(browser, guest) == "", "consent comes first"
    sharing.accept(guest, user=bob, now=clock.now())
    place.enter(place.ticket())
    hers = place.cookie
    assert place.enter(place.guest_ticket(browser, guest)).status == 303
    assert place.cookie != hers
    other, _is_new = services.open_session(place.pod.pk, Tool.PORT, 9, user=place.people.alice, now=clock.now())
    assert place.get("/headers", host=f"{other.slug}.localhost:{place.port}").status == 403
    assert browser.get(reverse("workbench:session", args=[other.uid])).status_code == 403
    takers = {
        "revoked": lambda: sharing.revoke(guest, user=place.people.alice, now=clock.now()),
        "expired": lambda: Guest.objects.filter(pk=guest.pk).update(expires_at=clock.now()),
        "owner without the right": lambda: hers_in_the_tenant.update(role="viewer"),
        "session ended by the co-owner": lambda: _end_as_co_owner(guest, bob),
    }
    for why, take in takers.items():
        Guest.objects.update(ended_at=None, expires_at=guest.expires_at, role="peer")
        place.enter(place.guest_ticket(browser, guest))
        with place.socket() as opened:
            opened.send("hi")
            assert opened.recv(5) == "echo hi", why
            take()
            with pytest.raises(ConnectionClosed):
                opened.recv(5)
        assert place.get("/headers").status == 403, why
        hers_in_the_tenant.update(role="admin")


def _end_as_co_owner(guest: Guest, person: User) -> None:
    guest.refresh_from_db()
    with pytest.raises(Forbidden):
        sharing.end_shared_session(guest, user=person, now=clock.now())
    Guest.objects.update(role="owner")
    sharing.end_shared_session(guest, user=person, now=clock.now())


def test_session_of_a_token_ends_with_the_token(place: ProxySetup) -> None:
    _secret = accounts.create_token(
        place.people.alice, name="ci", lifetime=accounts.MAX_TOKEN_LIFETIME, now=clock.now(), scopes=[Scope.JOBS]
    )
    token = place.people.alice.tokens.get()
    place.enter(entry.issue_ticket(place.session, login=None, token=token.pk))
    assert place.get("/headers").status == 200
    with place.socket() as opened:
        accounts.revoke_token(place.people.alice, token.pk, now=clock.now())
        with pytest.raises(ConnectionClosed):
            opened.recv(5)
    assert place.get("/headers").status == 403


def test_too_many_requests_at_once_get_a_page_that_says_so(place: ProxySetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MAX_OPEN", 1)
    place.enter(place.ticket())
    events = place.get("/events")
    assert events.read(13) == b"data: first\n\n"
    streaming = place.last
    refused = place.get("/")
    assert (refused.status, refused.headers["retry-after"]) == (429, "5")
    assert b"too many open requests" in refused.read()
    with pytest.raises(InvalidStatus):
        place.socket()
    streaming.close()
    deadline = time.monotonic() + 10
    while place.get("/").status != 200:
        assert time.monotonic() < deadline


def test_servers_that_do_not_answer_or_answer_nonsense(place: ProxySetup) -> None:
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        number = listener.getsockname()[1]
        ToolSession.objects.update(port=number)
        place.enter(place.ticket())
        found = place.get("/")
        assert (found.status, b"Nothing answers on port %d" % number in found.read()) == (502, True)
        listener.listen()
        answers = {
            b"SSH-2.0-OpenSSH\r\n": 502,
            b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 300 + b"\r\n": 502,
            b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000: 502,
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n": 502,
            b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok": 200,
            b"HTTP/1.0 200 OK\r\n\r\nuntil the end": 200,
        }
        for answer, status in answers.items():
            thread = threading.Thread(target=_answer_once, args=(listener, answer))
            thread.start()
            assert place.get("/").status == status, answer[:60]
            thread.join()


def _answer_once(listener: socket.socket, answer: bytes) -> None:
    client, _address = listener.accept()
    with closing(client):
        client.recv(65536)
        client.sendall(answer)


def test_pages_open_list_and_end_sessions(place: ProxySetup) -> None:
    tools = reverse("workbench:tools", args=[place.pod.job.uid, place.pod.pk])
    for number in ("70000", "0", "x", ""):
        assert "field-wrong" in place.browser.post(tools, {"port": number}).content.decode(), number
    opened = place.browser.post(tools, {"port": str(place.tool_port)}, headers={"host": f"localhost:{place.port}"})
    assert ToolSession.objects.count() == 1  # the same again
    url = opened.headers["Refresh"].partition("url=")[2]
    assert url.startswith(f"http://{place.host}{entry.ENTER_PATH}?ticket=")
    assert place.enter(url.partition("ticket=")[2]).status == 303
    page = place.browser.get(tools).content.decode()
    assert f"Port {place.tool_port}" in page
    session = reverse("workbench:session", args=[place.session.uid])
    assert session in page
    ada = Client()
    ada.force_login(place.people.ada, backend="django.contrib.auth.backends.ModelBackend")
    assert "Only the person who opened a session" in ada.get(session).content.decode()
    assert ada.post(reverse("workbench:enter", args=[place.session.uid])).status_code == 403
    assert ada.post(reverse("workbench:end", args=[place.session.uid])).headers["Location"] == tools
    assert "This session has ended" in place.browser.get(session).content.decode()
    assert "No open sessions" in place.browser.get(tools).content.decode()


def test_pages_name_the_way_without_a_domain(place: ProxySetup, settings: Any) -> None:
    settings.PUBLIC_URL = "http://10.0.0.7:8000"
    tools = reverse("workbench:tools", args=[place.pod.job.uid, place.pod.pk])
    page = place.browser.get(tools).content.decode()
    assert "hekla ssh served -N -L 8080:localhost:8080" in page
    opened = place.browser.post(tools, {"port": "9000"})
    assert "HEKLA_WORKBENCH_DOMAIN" in opened.content.decode()
    assert ToolSession.objects.count() == 1
