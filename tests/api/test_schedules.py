"""Schedules over REST."""

from datetime import timedelta

import pytest

from hekla.apps.jobs.models import Job
from hekla.apps.schedules import services
from hekla.lib import clock

SCHEDULES = "/api/v1/schedules"
MANIFEST = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: CronJob
metadata: {name: nightly, labels: {a: b}}
spec:
  schedule: "0 2 * * *"
  timeZone: Asia/Shanghai
  jobTemplate:
    spec: {tasks: [{name: main, template: {spec: {containers: [{name: m, command: ["true"]}]}}}]}
"""


@pytest.fixture
def made(alice, a_job):
    answer = alice.post(SCHEDULES, {"name": "hourly", "cron": "@hourly", "job": a_job}, format="json")
    assert answer.status_code == 201, answer.json()
    return answer.json()["schedule"]


def at(schedule):
    return f"{SCHEDULES}/{schedule['uid']}"


def test_a_document_makes_one(alice, made):
    assert (made["tenant"], made["owner"], made["cron"], made["time_zone"]) == ("lab", "alice", "@hourly", "UTC")
    assert len(made["next_times"]) == 5
    [listed] = alice.get(SCHEDULES).json()["results"]
    assert listed["uid"] == made["uid"]
    assert alice.get(f"{SCHEDULES}?name=daily").json()["results"] == []


def test_a_cron_job_makes_one_and_what_has_no_effect_is_said(alice):
    answer = alice.generic("POST", SCHEDULES, MANIFEST, content_type="application/yaml").json()
    assert answer["schedule"]["time_zone"] == "Asia/Shanghai"
    assert answer["warnings"] == ["metadata.labels: ignored."]


@pytest.mark.parametrize(
    ("changes", "status", "path"),
    [
        ({"cron": "61 * * * *"}, 400, "cron"),
        ({"job": {"tasks": []}}, 400, "job.tasks"),
        ({"colour": "red"}, 400, "colour"),
        ({"name": "\u0000"}, 400, "name"),
        ({"cron": {"a": 1}}, 400, "cron"),
        ({"job": []}, 400, "job"),
        ({"starting_deadline_seconds": 10**400}, 400, "starting_deadline_seconds"),
    ],
)
def test_a_wrong_field_is_named(alice, a_job, changes, status, path):
    answer = alice.post(SCHEDULES, {"name": "x", "cron": "@daily", "job": a_job, **changes}, format="json")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (status, path)


def test_a_name_is_taken_once(alice, made, a_job):
    answer = alice.post(SCHEDULES, {"name": "hourly", "cron": "@daily", "job": a_job}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (409, "name_taken")


def test_some_fields_can_be_changed(alice, made):
    changed = alice.patch(at(made), {"cron": "@daily", "concurrency": "Forbid"}, format="json").json()
    assert (changed["cron"], changed["spec"]["concurrency"]) == ("@daily", "Forbid")
    assert changed["spec"]["job"] == made["spec"]["job"]
    assert alice.patch(at(made), {"name": "other"}, format="json").status_code == 409
    assert alice.patch(at(made), {"cron": "no"}, format="json").status_code == 400


def test_it_is_run_suspended_resumed_and_deleted(alice, made):
    ran = alice.post(f"{at(made)}/actions", {"action": "run"}, format="json").json()
    assert (ran["runs"][0]["phase"], ran["runs"][0]["by_hand"]) == ("pending", True)
    suspended = alice.post(f"{at(made)}/actions", {"action": "suspend"}, format="json").json()
    assert (suspended["is_suspended"], suspended["next_times"]) == (True, [])
    assert not alice.post(f"{at(made)}/actions", {"action": "resume"}, format="json").json()["is_suspended"]
    assert alice.delete(at(made)).status_code == 204
    assert alice.get(at(made)).status_code == 404
    assert Job.objects.count() == 1


def test_why_a_time_was_skipped_is_told(alice, made):
    alice.patch(at(made), {"concurrency": "Forbid"}, format="json")
    for hours in (1, 2):
        services.start_due(now=clock.now() + timedelta(hours=hours))
    skipped, started = alice.get(at(made)).json()["runs"]
    assert (started["outcome"], started["sentence"]) == ("started", "")
    assert (skipped["outcome"], skipped["reason"], skipped["job"]) == ("skipped", "still_running", None)
    assert started["job"] in skipped["sentence"]


def test_a_mate_sees_it_and_a_stranger_does_not(bob, charlie, made):
    assert bob.get(at(made)).status_code == 200
    assert bob.post(f"{at(made)}/actions", {"action": "run"}, format="json").status_code == 403
    assert charlie.get(at(made)).status_code == 404
    assert charlie.get(SCHEDULES).json()["results"] == []
