"""Pages show times in the zone that the person chose, else in that of the browser, else in that of the console."""

import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.pages.frame.time_zone import COOKIE

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]


@pytest.mark.parametrize(
    ("chosen", "cookie", "offset"),
    [
        ("", "", "+00:00"), ("", "Asia/Tokyo", "+09:00"), ("Asia/Shanghai", "Asia/Tokyo", "+08:00"),
        ("", "../../etc/passwd", "+00:00"), ("", "Asia", "+00:00"), ("", "x" * 999, "+00:00"),
    ],
)  # fmt: skip
def test_page_shows_times_in_the_zone(people: People, as_: As, chosen: str, cookie: str, offset: str) -> None:
    job, client = people.submit(), as_(people.alice)
    User.objects.filter(pk=people.alice.pk).update(time_zone=chosen)
    client.cookies[COOKIE] = cookie
    page = client.get(reverse("jobs:detail", args=[job.uid])).content.decode()
    assert set(re.findall(r'<time datetime="[^"]*([+-]\d\d:\d\d)"', page)) == {offset}
    assert f'data-time-zone="{chosen}"' in page


def test_rest_answers_in_utc_also_with_a_session(people: People, as_: As) -> None:
    job, client = people.submit(), as_(people.alice)
    User.objects.filter(pk=people.alice.pk).update(time_zone="Asia/Tokyo")
    assert client.get(f"/api/v1/jobs/{job.uid}").json()["submitted_at"].endswith("Z")


def test_zone_is_chosen_in_the_profile(people: People, as_: As) -> None:
    client, address = as_(people.alice), reverse("accounts:profile")
    assert '<option value="Europe/Berlin">' in client.get(address).content.decode()
    values = {"display_name": "Alice", "time_zone": "Europe/Berlin"}
    assert client.post(address, values).status_code == 302
    assert User.objects.get(pk=people.alice.pk).time_zone == "Europe/Berlin"
    assert client.post(address, values | {"time_zone": "Mars/Base"}).status_code == 200
    assert User.objects.get(pk=people.alice.pk).time_zone == "Europe/Berlin"
