"""Sessions at paths of one host: what one could do to another, and what keeps it from that."""

import http.client
import time
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from tests.live.test_proxy import REACHED, SHARED_HOST, ProxySetup, place, received_by_tool
from websockets.exceptions import ConnectionClosed, InvalidStatus

from hekla.apps.workbench import checks, entry, services
from hekla.apps.workbench.models import ToolSession
from hekla.domain.sharing import GuestRole
from hekla.domain.tools import Tool
from hekla.lib import clock

__all__ = ["place"]
pytestmark = pytest.mark.parametrize("place", ["shared host"], indirect=True)


def second(place: ProxySetup) -> ToolSession:
    """Another session of Alice."""
    return services.open_session(place.pod.pk, Tool.PORT, 9, user=place.people.alice, now=clock.now())[0]


def enter(place: ProxySetup, session: ToolSession, ticket: str = "") -> http.client.HTTPResponse:
    """Enter in the browser that `place` has, with its cookies."""
    path = f"{entry.ENTER_PATH}?ticket={ticket or place.ticket(session)}"
    return place.get(path, at=entry.mount(session.slug), **place.entering)


def test_paths_lead_into_the_session_of_the_cookie_only(place: ProxySetup) -> None:
    place.enter(place.ticket())
    other, mount = second(place), place.mount
    refused = {
        403: [f"/{other.slug}/headers", f"http://{SHARED_HOST}/{other.slug}/headers", f"http://evil/{other.slug}/"],
        404: [
            *("/", "/headers", f"{mount}x/headers", f"{mount}/../{other.slug}/headers"),
            *(f"{mount}/..%2f{other.slug}/headers", f"{mount}/%2e%2e/{other.slug}/headers"),
            f"http://{SHARED_HOST}{mount}/../{other.slug}/",
        ],
    }  # fmt: skip
    for status, paths in refused.items():
        for path in paths:
            assert place.get(path, at="").status == status, path
    assert place.get("", method="POST").status == 404
    assert place.get("").headers["location"] == f"{mount}/"
    found = received_by_tool(place.get("/headers", host=f"{SHARED_HOST}.:{place.port}"))
    assert found["path"] == "/headers"
    own, session = place.host, place.session
    with place.socket() as opened:
        opened.send("hi")
        assert opened.recv(5) == "echo hi"
    place.session = other
    with pytest.raises(InvalidStatus):
        place.socket()  # with the cookie of the first
    place.session = session
    with pytest.raises(InvalidStatus):
        place.socket("/../echo")
    for host in (f"{place.session.slug}.localhost", f"x.{own}", "localhost"):
        assert place.get("/", host=host).read() == b"console", host
    REACHED.clear()


def test_pass_counts_beside_the_cookie_of_its_browser_only(place: ProxySetup) -> None:
    place.enter(place.ticket())
    pass_, browser = place.cookie.split("; ")
    assert (pass_.partition("=")[0], browser.partition("=")[0]) == (entry.cookie_name(), entry.browser_cookie_name())
    assert place.get("/headers").status == 200
    for cookie in (
        pass_,
        browser,
        f"{pass_}; {browser}x",
        f"{pass_}; {browser}; {browser}",
        f"{pass_}; {browser[:-30]}",
    ):
        assert place.get("/headers", cookie=cookie).status == 403, cookie
    assert place.get("/sw.js", service_worker="script").status == 403
    assert place.get("/sw.js", sec_fetch_dest="serviceworker", sec_fetch_site="same-origin").status == 403
    cache.clear()
    found = place.enter("")
    assert found.status == 403, "what the cache has forgotten is opened again"


def test_other_pages_cannot_open_a_session_in_the_browser_of_a_person(place: ProxySetup) -> None:
    place.enter(place.ticket())
    other = second(place)
    address = f"{entry.ENTER_PATH}?ticket={place.ticket(other)}"
    link = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    for headers in (link, {**link, "sec_fetch_site": "none"}, {}):
        page = place.get(address, at=entry.mount(other.slug), **headers)
        assert (page.status, page.headers["set-cookie"], page.headers["clear-site-data"]) == (200, None, None)
        assert page.headers.get_all("referrer-policy") == ["same-origin"], "so that its form names its origin"
        assert b'<form method="post">' in page.read()
    for headers in ({}, {"origin": "http://evil.example"}, {"origin": "null"}, {**link, "origin": "null"}):
        assert place.get(address, at=entry.mount(other.slug), method="POST", **headers).status == 403
    assert place.get("/headers").status == 200, "the session of before is still open"
    assert place.get(address, at=entry.mount(other.slug), **place.entering).status == 303


def test_second_session_ends_the_first_one(place: ProxySetup) -> None:
    assert place.enter(place.ticket()).headers["clear-site-data"] == '"cache", "storage"'
    first, other = place.cookie, second(place)
    again = enter(place, place.session)
    assert (again.status, again.headers["clear-site-data"]) == (303, None), "a second tab ends nothing"
    with place.socket() as opened:
        events = place.get("/events")
        assert events.read(13) == b"data: first\n\n"
        entered = enter(place, other)
        assert (entered.status, entered.headers["location"]) == (303, f"/{other.slug}/")
        assert entered.headers["clear-site-data"] == '"cache", "storage"'
        lines = entered.headers.get_all("set-cookie")
        assert [line for line in lines if line.startswith(f"{entry.cookie_name()}=; Path={place.mount}/; Max-Age=0;")]
        browser = next(line for line in lines if line.startswith(entry.browser_cookie_name())).partition(";")[0]
        assert place.get("/headers", cookie=f"{first.split('; ')[0]}; {browser}").status == 403
        with pytest.raises(ConnectionClosed) as closed:
            opened.recv(5)
        assert closed.value.rcvd.code == 1001
        with pytest.raises(http.client.IncompleteRead):
            events.read()
    assert place.get("/headers").status == 403, "also in another browser"


def test_another_person_in_the_same_browser_ends_it_too(place: ProxySetup) -> None:
    bob, browser = place.people.bob, Client()
    browser.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    guest = place.invite(bob, GuestRole.PEER)
    before = browser.post(reverse("sharing:enter", args=[guest.uid]))
    assert "Refresh" not in before.headers
    assert f"share the host {SHARED_HOST}" in before.content.decode()
    agreed = browser.post(reverse("sharing:enter", args=[guest.uid]), {"agreed": "yes"})
    place.enter(place.ticket())
    assert enter(place, place.session, agreed.headers["Refresh"].rpartition("?ticket=")[2]).status == 303
    deadline = time.monotonic() + 5
    while place.get("/headers").status != 403:
        assert time.monotonic() < deadline, "with a copy of the cookies, within seconds"


def test_pages_say_what_is_shared_before_a_session_opens(place: ProxySetup) -> None:
    host = {"host": f"localhost:{place.port}"}
    page, enter_page = (reverse(f"workbench:{name}", args=[place.session.uid]) for name in ("session", "enter"))
    tools = reverse("workbench:tools", args=[place.pod.job.uid, place.pod.pk])
    for address, fields in ((tools, {"port": str(place.tool_port)}), (enter_page, {})):
        assert place.browser.post(address, fields).headers["Location"] == page
    assert place.browser.post(enter_page, headers={"HX-Request": "true"}).headers["HX-Redirect"] == page
    place.enter(place.ticket())
    text = place.browser.get(f"{page}?go").content.decode()
    assert f"share the host {SHARED_HOST}" in text
    assert f"its page is at {place.mount}/" in text
    assert "hx-trigger" not in text
    assert "This ends another session" not in text
    other = second(place)
    assert (
        "This ends another session"
        in place.browser.get(reverse("workbench:session", args=[other.uid])).content.decode()
    )
    opened = place.browser.post(enter_page, {"agreed": "yes"}, headers=host)
    url = opened.headers["Refresh"].partition("url=")[2]
    assert url.startswith(f"http://{place.host}{place.mount}{entry.ENTER_PATH}?ticket=")
    address = f"/api/v1/jobs/{place.pod.job.uid}/sessions/{place.session.uid}/url"
    answer: dict[str, Any] = place.browser.post(address, headers=host).json()
    assert answer["url"].startswith(f"http://{place.host}{place.mount}/")
    assert SHARED_HOST in answer["notice"]
    assert [one.id for one in checks.check()] == ["hekla.W002"]


def test_cookies_are_for_tls_where_the_console_is(place: ProxySetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "SESSION_COOKIE_SECURE", True)
    lines = place.enter(place.ticket()).headers.get_all("set-cookie")
    assert [line.partition("hekla")[0] for line in lines] == ["__Secure-", "__Host-"]
    assert all(line.endswith("; HttpOnly; SameSite=Lax; Secure") for line in lines)
