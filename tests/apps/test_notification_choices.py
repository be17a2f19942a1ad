"""Notifications chosen with the submission of a job, on the form and over REST."""

from typing import Any

import pytest
from django.urls import reverse
from tests.apps.access_world import MANIFEST, SPEC
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.apps.test_notifications import As, choose, preferences
from tests.apps.test_submission import minimal_form

from hekla.apps.accounts.models import User
from hekla.apps.jobs.models import Job
from hekla.apps.notifications import services
from hekla.apps.notifications.models import JobChoice
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]
NOTIFY = {"notify-moments": ["failed", "started"], "notify-channels": ["page"], "notify-long_wait_minutes": "5"}


def choices() -> list[tuple[list[str], list[str], int]]:
    return [(one.moments, one.channels, one.long_wait_minutes) for one in JobChoice.objects.order_by("pk")]


@pytest.mark.parametrize("route", ["jobs:submit", "jobs:submit_yaml"])
def test_preferences_are_chosen_with_the_submission(people: People, as_: As, route: str) -> None:
    choose(people, moments=["ended"], long_wait_minutes=7)
    first = as_(people.alice).get(reverse(route)).context["beside"].hears
    assert (first["moments"].value(), first["long_wait_minutes"].value()) == (["ended"], 7)
    as_(people.alice).post(reverse(route), {**minimal_form(), "text": MANIFEST, **NOTIFY})
    assert choices() == [(["failed", "started"], ["page"], 5)]
    assert JobChoice.objects.get().job_uid == Job.objects.get().uid


def test_defaults_are_not_saved_for_a_job(people: People, as_: As) -> None:
    defaults = {"notify-moments": ["ended", "failed", "evicted", "deleting"], "notify-channels": ["page"]}
    as_(people.alice).post(reverse("jobs:submit"), {**minimal_form(), **defaults, "notify-long_wait_minutes": "30"})
    assert (Job.objects.count(), choices()) == (1, [])


@pytest.mark.parametrize("do", ["", "yaml", "sweep", "distributed"])
def test_invalid_channel_refuses_the_job_and_keeps_the_input(people: People, as_: As, do: str) -> None:
    page = as_(people.alice).post(
        reverse("jobs:submit"), {**minimal_form(), **NOTIFY, "notify-channels": ["webhook"], "do": do}
    )
    notification_form = page.context["beside"].hears
    assert (notification_form["channels"].value(), notification_form["moments"].value()) == (
        ["webhook"],
        ["failed", "started"],
    )
    assert ("Enter a webhook URL." in page.content.decode()) is (do == "")
    assert (Job.objects.count(), choices()) == (0, [])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", []),
        ("?notify=failed&notify=waits&notify_after=9", [(["failed", "waits"], ["page"], 9)]),
        ("?notify=nothing", [([], ["page"], 30)]),
        ("?notify_by=mail", [(["deleting", "ended", "evicted", "failed"], ["mail"], 30)]),
    ],
)
def test_rest_submission_chooses_preferences(people: People, as_: As, query: str, expected: list[Any]) -> None:
    services.choose(
        people.alice,
        preferences(moments=["ended", "failed", "evicted", "deleting"], mail="a@example.org"),
        now=clock.now(),
    )
    answer = as_(people.alice).post(f"/api/v1/jobs{query}", SPEC, content_type="application/json")
    assert (answer.status_code, choices()) == (201, expected)


@pytest.mark.parametrize("query", ["?notify=often", "?notify_by=mail", "?notify_after=0"])
def test_rest_submission_refuses_invalid_preferences(people: People, as_: As, query: str) -> None:
    User.objects.filter(pk=people.alice.pk).update(email="")
    answer = as_(people.alice).post(f"/api/v1/jobs{query}", SPEC, content_type="application/json")
    assert answer.status_code in (400, 422), answer.content
    assert answer.json()["errors"][0]["path"].startswith("notify")
    assert not Job.objects.exists()
