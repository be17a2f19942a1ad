"""Announcements: who sees which banner, in which language, and for how long."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse
from django.utils import translation
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.announcements import selectors, services
from hekla.apps.event_log.models import LoggedEvent
from hekla.domain.errors import Forbidden, Invalid
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]
BELL = "notifications:bell"


def banner(as_: Any, user: Any) -> str:
    return as_(user).get(reverse(BELL), headers={"referer": "http://testserver/jobs/?q=a"}).content.decode()


def test_banner_is_for_everybody_or_for_members_of_a_tenant(people: People, as_: Any) -> None:
    now = clock.now()
    services.announce(values={"text": "For <all>"}, user=people.ada, now=now)
    services.announce(values={"text": "For the lab"}, tenants=[people.lab], user=people.ada, now=now)
    assert "For &lt;all&gt;" in banner(as_, people.charlie)
    assert "For the lab" not in banner(as_, people.charlie)
    assert "For the lab" in banner(as_, people.bob)
    assert "For the lab" not in banner(as_, people.ada)
    assert "For the lab" in as_(people.ada).get(reverse("announcements:list")).content.decode()
    assert "For the lab" not in as_(people.charlie).get(reverse("announcements:list")).content.decode()
    assert [one["text"] for one in as_(people.charlie).get(reverse("api:v1:announcements")).json()] == ["For <all>"]


def test_members_of_one_tenant_do_not_learn_of_others(people: People, as_: Any) -> None:
    services.announce(values={"text": "For two"}, tenants=[people.lab, people.other], user=people.ada, now=clock.now())
    page = as_(people.charlie).get(reverse("announcements:list")).content.decode()
    assert "For two" in page
    assert not re.search(r"\bLab\b", page)
    (found,) = as_(people.charlie).get(reverse("api:v1:announcements")).json()
    assert found["tenants"] == [people.other.slug]
    (found,) = as_(people.ada).get(reverse("api:v1:announcements")).json()
    assert set(found["tenants"]) == {people.lab.slug, people.other.slug}


def test_announcement_begins_and_ends(people: People) -> None:
    now = clock.now()
    values = {"text": "Later", "begin_at": now + timedelta(hours=1), "end_at": now + timedelta(hours=2)}
    services.announce(values=values, user=people.ada, now=now)
    current = [bool(selectors.current(people.bob, now=now + timedelta(minutes=at))) for at in (0, 61, 119, 121)]
    assert current == [False, True, True, False]
    assert not selectors.visible_to(people.bob, now=now)
    assert selectors.visible_to(people.ada, now=now + timedelta(days=1))


def test_each_person_hides_it_for_themselves_and_returns_to_the_page(people: People, as_: Any) -> None:
    one = services.announce(values={"text": "Maintenance"}, user=people.ada, now=clock.now())
    page = banner(as_, people.bob)
    assert 'value="/jobs/?q=a"' in page
    back = as_(people.bob).post(reverse("announcements:dismiss", args=[one.uid]), {"back": "/jobs/?q=a"})
    assert back.url == "/jobs/?q=a"
    away = as_(people.bob).post(reverse("announcements:dismiss", args=[one.uid]), {"back": "https://example.org/"})
    assert away.url == reverse("home")
    assert "Maintenance" not in banner(as_, people.bob)
    assert "Maintenance" in banner(as_, people.charlie)


def test_text_is_in_the_language_of_the_reader(people: People) -> None:
    one = services.announce(values={"text": "Maintenance", "text_zh": "维护"}, user=people.ada, now=clock.now())
    other = services.announce(values={"text": "Maintenance"}, user=people.ada, now=clock.now())
    with translation.override("zh-hans"):
        assert (one.words, other.words) == ("维护", "Maintenance")
    assert one.words == "Maintenance"


def test_page_writes_and_withdraws_with_events(people: People, as_: Any) -> None:
    client = as_(people.ada)
    page = client.post(reverse("announcements:create"), {"text": "Maintenance", "level": "critical"}, follow=True)
    assert "Maintenance" in page.content.decode()
    refused = client.post(
        reverse("announcements:create"), {"text": "Over", "level": "info", "end_at": "2020-01-01T00:00"}
    )
    assert "Choose a time after its begin, in the future." in refused.content.decode()
    (one,) = selectors.visible_to(people.ada, now=clock.now())
    client.post(reverse("announcements:withdraw", args=[one.uid]))
    assert not selectors.visible_to(people.ada, now=clock.now())
    kinds = list(LoggedEvent.objects.filter(subject=f"announcement:{one.pk}").values_list("kind", flat=True))
    assert kinds == ["AnnouncementCreated", "AnnouncementDeleted"]


def test_only_operators_announce(people: People) -> None:
    with pytest.raises(Forbidden):
        services.announce(values={"text": "x"}, user=people.alice, now=clock.now())
    past = {"text": "x", "end_at": clock.now() - timedelta(hours=1)}
    with pytest.raises(Invalid):
        services.announce(values=past, user=people.ada, now=clock.now())
