"""Previews of jobs that have not been submitted, and forecasts of starts."""

from datetime import timedelta

import pytest
from tests.apps.test_queue_pages import set_running

from hekla.api import throttles
from hekla.apps.forecasts import services as forecasts
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues.models import Queue
from hekla.lib import clock
from hekla.simulation import snapshot_cache

ADDRESS = "/api/v1/what-if"


@pytest.fixture(autouse=True)
def forget_snapshots():
    snapshot_cache.forget_all()


def preview(client, document, query=""):
    return client.post(ADDRESS + query, document, format="json")


def sized(a_job, replicas, **more):
    return a_job | {"tasks": [a_job["tasks"][0] | {"replicas": replicas}], **more}


def test_fitting_job_would_start_now(alice, a_job):
    answer = preview(alice, sized(a_job, 3)).json()
    assert (answer["verdict"], answer["nodes"], answer["changes"]) == ("now", {"n": 3}, [])
    assert answer["text"][0] == "Would start now"
    assert not Job.objects.exists()


def test_suggestions_contain_the_changed_job(alice, a_job):
    answer = preview(alice, sized(a_job, 6)).json()
    assert answer["verdict"] == "never"
    changed = {change["change"]: change["spec"] for change in answer["changes"]}
    assert changed["worker.replicas=4"] == sized(a_job, 4)
    assert preview(alice, changed["worker.replicas=4"]).json()["verdict"] == "now"


@pytest.mark.parametrize(
    ("changes", "query", "status"),
    [
        ({"queue": "theirs"}, "", 409),
        ({"queue": "nowhere"}, "", 409),
        ({"tasks": []}, "", 400),
        ({}, "?tenant=other", 404),
    ],
)
def test_preview_has_the_errors_of_a_submission(alice, a_job, changes, query, status):
    assert preview(alice, a_job | changes, query).status_code == status


def test_previews_are_throttled(alice, a_job, monkeypatch):
    monkeypatch.setattr(throttles, "WHAT_IFS", 1)
    assert [preview(alice, a_job).status_code for _ in range(3)][-1] == 429


def start_forecast(client, name):
    uid = Job.objects.get(name=name).uid
    answer = client.get(f"/api/v1/jobs/{uid}/start")
    assert answer.status_code == 200
    return answer.json()


def test_waiting_job_has_a_position_and_a_forecast(alice, bob, charlie, a_job):
    for name, client in (("first", alice), ("second", bob), ("third", alice)):
        assert client.post("/api/v1/jobs", sized(a_job, 3, name=name), format="json").status_code == 201
    assert start_forecast(alice, "first")["waits"] is False
    third = start_forecast(alice, "third")
    assert (third["waits"], third["place"], third["line"]) == (True, 2, 2)
    assert third["text"][:2] == ["Job first holds 3 CPU.", "Position in its queue: 2 of 2."]
    assert (third["earliest_at"], third["accuracy"]) == (None, None)
    assert "too little data" in third["text"][2]
    assert charlie.get(f"/api/v1/jobs/{Job.objects.get(name='third').uid}/start").status_code == 404


@pytest.mark.parametrize(("order", "place"), [("", 1), ("fifo", 4), ("priority", 1), ("sla", 2), ("fair", 2)])
def test_position_follows_the_order_of_the_queue(alice, bob, a_job, order, place):
    """The last job has a high priority and the later of two deadlines; one of Alice's jobs runs already."""
    Queue.objects.update(job_order=order)
    jobs = [
        ("runs", alice, 0, ""),
        ("one", bob, 0, ""),
        ("two", bob, 0, "1m"),
        ("three", bob, 0, ""),
        ("last", alice, 9, "1h"),
    ]
    for name, client, priority, deadline in jobs:
        notes = {"volcano.sh/sla-waiting-time": deadline} if deadline else {}
        fields = {"name": name, "priority": priority, "annotations": notes}
        assert client.post("/api/v1/jobs", sized(a_job, 3, **fields), format="json").status_code == 201
    set_running(Job.objects.get(name="runs"), pods=3)
    Pod.objects.update(node="n", task=a_job["tasks"][0]["name"])
    last = start_forecast(alice, "last")
    assert (last["place"], last["line"]) == (place, 4)


def test_forecast_reports_its_accuracy(alice, a_job):
    now = clock.now()
    for number in range(5):
        alice.post("/api/v1/jobs", a_job | {"name": f"old-{number}"}, format="json")
    old = list(Job.objects.all())
    Job.objects.update(started_at=now, finished_at=now, phase="completed")
    intervals = [(now - timedelta(minutes=1), now + timedelta(minutes=one.pk % 2)) for one in old]
    forecasts.keep({one.pk: interval for one, interval in zip(old, intervals, strict=True)}, now=now)
    alice.post("/api/v1/jobs", sized(a_job, 3, name="waits"), format="json")
    assert start_forecast(alice, "waits")["accuracy"] == {"held": 5, "cases": 5}
