"""Running pods without progress, from their logs to the page, REST and the owner's notification."""

from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.apps.test_job_metrics import LogServer, change_phase, job, server

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs.models import Job
from hekla.apps.measures import stalls
from hekla.apps.notifications import labels
from hekla.apps.notifications import services as notifications
from hekla.apps.notifications.models import Notification
from hekla.backends.base import BackendError
from hekla.controller import job_metrics as reader
from hekla.domain.phases import JobPhase, PodPhase
from hekla.domain.stalls import StallSign
from hekla.lib import clock

__all__ = ["db", "job", "people", "server", "shared_people"]


@pytest.fixture
def stopped(job: Job, server: LogServer, people: People) -> Job:
    """A job that printed metrics for a minute, 40 minutes ago, on a cluster that is not simulated."""
    begin = clock.now() - timedelta(minutes=41)
    type(people.cluster).objects.filter(pk=people.cluster.pk).update(kind="local")
    change_phase(job, PodPhase.RUNNING, started_at=begin, node="n1")
    Job.objects.filter(pk=job.pk).update(phase=JobPhase.RUNNING)
    for step in range(6):
        server.text += f"::metric step={step} loss=1\n".encode()
        reader.read_metrics(now=begin + timedelta(seconds=11 * (step + 1)))
    reader.read_metrics(now=clock.now())
    job.refresh_from_db()
    return job


def test_page_rest_and_job_name_the_pod_with_its_evidence(stopped: Job, people: People, as_: Any) -> None:
    for person in (people.bob, people.ada):
        page = as_(person).get(reverse("operations:stalled")).content.decode()
        for words in (
            "train",
            "main-0",
            "n1",
            "Last metric: loss at step 5.",
            "Its log does not grow.",
            "Open the log",
        ):
            assert words in page
        assert ("Ask the owner" in page) == (person == people.ada)
    part = as_(people.alice).get(reverse("operations:stalled_of", args=[stopped.uid])).content.decode()
    assert "1 pod seems to make no progress." in part
    assert "Terminal" in part
    found = as_(people.bob).get(reverse("api:v1:stalled_pods")).json()
    assert (found["judged"], found["is_cut"]) == (1, False)
    (pod,) = found["pods"]
    assert (pod["job"], pod["node"], pod["owner"]) == (str(stopped.uid), "n1", "alice")
    assert [one["sign"] for one in pod["signs"]] == [StallSign.NO_METRICS, StallSign.SILENT_LOG]
    assert pod["signs"][0]["figures"]["step"] == 5


def test_strangers_see_nothing_and_a_longer_time_is_no_sign(stopped: Job, people: People, as_: Any) -> None:
    page = as_(people.charlie).get(reverse("operations:stalled")).content.decode()
    assert "No stalled pods" in page
    assert as_(people.charlie).get(reverse("operations:stalled_of", args=[stopped.uid])).status_code == 404
    assert stalls.stalled(people.bob, minutes=60, now=clock.now()).rows == []


def test_a_cluster_that_does_not_answer_makes_no_pod_look_stalled(
    job: Job, server: LogServer, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    type(people.cluster).objects.filter(pk=people.cluster.pk).update(kind="local")
    begin = clock.now() - timedelta(minutes=41)
    change_phase(job, PodPhase.RUNNING, started_at=begin)
    for step in range(6):
        server.text += f"::metric step={step} loss=1\n".encode()
        reader.read_metrics(now=begin + timedelta(seconds=11 * (step + 1)))

    def silent(*_arguments: Any, **_facts: Any) -> Any:
        raise BackendError("no route to host")

    monkeypatch.setattr(server, "logs", silent)
    reader.read_metrics(now=clock.now())
    assert stalls.stalled(people.bob, now=clock.now()).rows == []


def test_the_owner_gets_one_request_a_day_with_its_author(stopped: Job, people: People, as_: Any) -> None:
    notifications.follow(now=clock.now())
    ada, address = as_(people.ada), reverse("operations:remind", args=[stopped.uid])
    page = ada.post(address, {"cause": "unused"}, follow=True)
    assert page.redirect_chain[-1][0] == reverse("operations:waste")
    assert "Alice gets a notification." in page.content.decode()
    page = ada.post(address, {"cause": "stalled"}, follow=True)
    assert "The owner was asked already in the last 24 hours." in page.content.decode()
    reminders = reverse("api:v1:job_reminders", args=[stopped.uid])
    assert ada.post(reminders, {"cause": "stalled"}, content_type="application/json").status_code == 409
    event = LoggedEvent.objects.get(kind="OwnerReminded")
    assert (event.actor_name, event.payload) == ("ada", {"cause": "unused"})
    notifications.follow(now=clock.now())
    notice = Notification.objects.get(user=people.alice, moment="reminded")
    assert labels.sentence(notice) == "ada asks you to look at train: it holds GPUs that it does not use."
    assert notice.page == reverse("jobs:detail", args=[stopped.uid])
    LoggedEvent.objects.filter(pk=event.pk).update(at=clock.now() - timedelta(days=1, minutes=1))
    assert ada.post(reminders, {"cause": "stalled"}, content_type="application/json").status_code == 204
