"""What programs are told of jobs that they have not submitted."""

from datetime import timedelta

import pytest

from hekla.api import throttles
from hekla.apps.forecasts import services as forecasts
from hekla.apps.jobs.models import Job
from hekla.lib import clock
from hekla.simulation import snapshot_cache

ADDRESS = "/api/v1/what-if"


@pytest.fixture(autouse=True)
def _nothing_is_kept():
    snapshot_cache.forget_all()


def ask(client, document, query=""):
    return client.post(ADDRESS + query, document, format="json")


def sized(a_job, replicas, **more):
    return a_job | {"tasks": [a_job["tasks"][0] | {"replicas": replicas}], **more}


def test_a_job_with_room_would_start(alice, a_job):
    answer = ask(alice, sized(a_job, 3)).json()
    assert (answer["verdict"], answer["nodes"], answer["changes"]) == ("now", {"n": 3}, [])
    assert answer["text"][0] == "Would start now"
    assert not Job.objects.exists()


def test_changes_are_offered_with_the_whole_job(alice, a_job):
    answer = ask(alice, sized(a_job, 6)).json()
    assert answer["verdict"] == "never"
    changed = {change["change"]: change["spec"] for change in answer["changes"]}
    assert changed["worker.replicas=4"] == sized(a_job, 4)
    assert ask(alice, changed["worker.replicas=4"]).json()["verdict"] == "now"


@pytest.mark.parametrize(
    ("changes", "query", "status"),
    [
        ({"queue": "theirs"}, "", 409),
        ({"queue": "nowhere"}, "", 409),
        ({"tasks": []}, "", 400),
        ({}, "?tenant=other", 404),
    ],
)
def test_it_answers_whom_a_submission_would(alice, a_job, changes, query, status):
    assert ask(alice, a_job | changes, query).status_code == status


def test_questions_are_counted(alice, a_job, monkeypatch):
    monkeypatch.setattr(throttles, "WHAT_IFS", 1)
    assert [ask(alice, a_job).status_code for _ in range(3)][-1] == 429


def started(client, name):
    uid = Job.objects.get(name=name).uid
    answer = client.get(f"/api/v1/jobs/{uid}/start")
    assert answer.status_code == 200
    return answer.json()


def test_a_job_that_waits_is_told_its_place_and_what_is_known_of_its_start(alice, bob, charlie, a_job):
    for name, asker in (("first", alice), ("second", bob), ("third", alice)):
        assert asker.post("/api/v1/jobs", sized(a_job, 3, name=name), format="json").status_code == 201
    assert started(alice, "first")["waits"] is False
    third = started(alice, "third")
    assert (third["waits"], third["place"], third["line"]) == (True, 2, 2)
    assert third["text"][0] == "Position in its queue: 2 of 2."
    assert (third["earliest_at"], third["accuracy"]) == (None, None)
    assert "too little data" in third["text"][1]
    assert charlie.get(f"/api/v1/jobs/{Job.objects.get(name='third').uid}/start").status_code == 404


def test_how_well_such_times_held_is_told_with_them(alice, a_job):
    now = clock.now()
    for number in range(5):
        alice.post("/api/v1/jobs", a_job | {"name": f"old-{number}"}, format="json")
    old = list(Job.objects.all())
    Job.objects.update(started_at=now, finished_at=now, phase="completed")
    spans = [(now - timedelta(minutes=1), now + timedelta(minutes=one.pk % 2)) for one in old]
    forecasts.keep({one.pk: span for one, span in zip(old, spans, strict=True)}, now=now)
    alice.post("/api/v1/jobs", sized(a_job, 3, name="waits"), format="json")
    assert started(alice, "waits")["accuracy"] == {"held": 5, "cases": 5}
