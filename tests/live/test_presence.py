"""Who has a session open: reported by the proxy, and shown to those who may act on the job and to guests inside."""

import time
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from tests.live.test_proxy import ProxySetup, place

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.sharing import presence
from hekla.apps.sharing import services as sharing
from hekla.apps.tenancy import services as tenancy
from hekla.apps.workbench import services
from hekla.domain.sharing import GuestRole
from hekla.lib import clock

__all__ = ["place"]


def test_who_is_here_is_shown_to_those_inside(place: ProxySetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "_HERE", timedelta(seconds=1.5))
    bob, browser = place.people.bob, Client()
    browser.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    address = f"/api/v1/jobs/{place.pod.job.uid}/sessions/{place.session.uid}/people"
    part = reverse("workbench:people", args=[place.session.uid])

    def here() -> dict[str, bool]:
        return {one["username"]: one["is_here"] for one in place.browser.get(address).json()}

    def until(expected: dict[str, bool]) -> None:
        deadline = time.monotonic() + 10
        while (found := here()) != expected:
            assert time.monotonic() < deadline, found
            time.sleep(0.05)

    assert (here(), browser.get(part).status_code) == ({}, 403)
    guest = place.invite(bob, GuestRole.PEER)
    place.enter(place.ticket())
    with place.socket() as hers:
        until({"alice": True})
        place.enter(place.guest_ticket(browser, guest))
        with place.socket() as his:
            until({"alice": True, "bob": True})
            share = reverse("sharing:session", args=[place.session.uid])
            for client, page in ((place.browser, share), (browser, part), (browser, reverse("sharing:mine"))):
                text = client.get(page).content.decode()
                assert (text.count("here now"), f'data-refresh="{part}"' in text) == (2, True), page
            his.close()
            until({"alice": True, "bob": False})
        sharing.revoke(guest, user=place.people.alice, now=clock.now())
        revoked = browser.get(part).content.decode()
        assert ("Your invitation was withdrawn." in revoked, "data-refresh" in revoked) == (True, False)
        assert (here(), "alice" in revoked) == ({"alice": True}, False)
        hers.close()
    services.close_session(place.session, actor=PLATFORM, now=clock.now())
    assert (here(), "data-refresh" in place.browser.get(part).content.decode()) == ({}, False)


def test_part_is_closed_with_the_reason_once_the_inviter_may_not_share(place: ProxySetup) -> None:
    bob, browser = place.people.bob, Client()
    carol = accounts.create_user(username="carol", password=None, actor=PLATFORM, now=clock.now())
    tenancy.add_member(place.pod.job.tenant, carol, "member", actor=PLATFORM, now=clock.now())
    browser.force_login(carol, backend="django.contrib.auth.backends.ModelBackend")
    place.invite(bob, GuestRole.OWNER)
    guest = sharing.invite(place.session, "carol", GuestRole.PEER, hours=1, user=bob, now=clock.now())
    sharing.accept(guest, user=carol, now=clock.now())
    mine, part = reverse("sharing:mine"), reverse("workbench:people", args=[place.session.uid])
    assert f'data-refresh="{part}"' in browser.get(mine).content.decode()
    User.objects.filter(pk=bob.pk).update(is_active=False)
    for page in (part, mine):
        found = browser.get(page)
        text = found.content.decode()
        assert (found.status_code, "Bob invited you, and may no longer share it." in text) == (200, True)
        assert (f'data-refresh="{part}"' in text, "Open now" in text) == (False, False)
    assert place.guest_ticket(browser, guest) == ""
    User.objects.filter(pk=bob.pk).update(is_active=True)
    assert "data-refresh" in browser.get(part).content.decode()
    sharing.revoke(guest, user=place.people.alice, now=clock.now())
    assert "Your invitation was withdrawn." in browser.get(part).content.decode()
