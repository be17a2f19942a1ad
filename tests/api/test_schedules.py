"""Schedules over REST."""

from datetime import timedelta

import pytest

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs.models import Job
from hekla.apps.schedules import services
from hekla.apps.schedules.models import Schedule
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
def schedule(alice, a_job):
    answer = alice.post(SCHEDULES, {"name": "hourly", "cron": "@hourly", "job": a_job}, format="json")
    assert answer.status_code == 201, answer.json()
    return answer.json()["schedule"]


def url_of(schedule):
    return f"{SCHEDULES}/{schedule['uid']}"


def test_dry_run_creates_no_schedule(alice):
    checked = alice.post(f"{SCHEDULES}?dry_run=1", MANIFEST, content_type="application/yaml")
    assert (checked.status_code, checked.json()["schedule"]["name"]) == (200, "nightly")
    assert not Schedule.objects.exists()
    assert not LoggedEvent.objects.filter(kind__startswith="Schedule").exists()
    wrong = MANIFEST.replace("0 2", "99 2")
    assert alice.post(f"{SCHEDULES}?dry_run=1", wrong, content_type="application/yaml").status_code == 400
    assert alice.post(SCHEDULES, MANIFEST, content_type="application/yaml").status_code == 201
    repeated = alice.post(f"{SCHEDULES}?dry_run=1", MANIFEST, content_type="application/yaml")
    assert repeated.status_code in (400, 409)


def test_schedule_is_created_from_a_document(alice, schedule):
    assert (schedule["tenant"], schedule["owner"], schedule["cron"], schedule["time_zone"]) == (
        "lab",
        "alice",
        "@hourly",
        "UTC",
    )
    assert len(schedule["next_times"]) == 5
    [listed] = alice.get(SCHEDULES).json()["results"]
    assert listed["uid"] == schedule["uid"]
    assert alice.get(f"{SCHEDULES}?name=daily").json()["results"] == []


def test_schedule_is_created_from_a_cron_job_with_warnings(alice):
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
def test_errors_name_the_field(alice, a_job, changes, status, path):
    answer = alice.post(SCHEDULES, {"name": "x", "cron": "@daily", "job": a_job, **changes}, format="json")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (status, path)


def test_duplicate_name_returns_409(alice, schedule, a_job):
    answer = alice.post(SCHEDULES, {"name": "hourly", "cron": "@daily", "job": a_job}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (409, "name_taken")


def test_some_fields_can_be_changed(alice, schedule):
    changed = alice.patch(url_of(schedule), {"cron": "@daily", "concurrency": "Forbid"}, format="json").json()
    assert (changed["cron"], changed["spec"]["concurrency"]) == ("@daily", "Forbid")
    assert changed["spec"]["job"] == schedule["spec"]["job"]
    assert alice.patch(url_of(schedule), {"name": "other"}, format="json").status_code == 409
    assert alice.patch(url_of(schedule), {"cron": "no"}, format="json").status_code == 400


def test_schedule_is_run_suspended_resumed_and_deleted(alice, schedule):
    ran = alice.post(f"{url_of(schedule)}/actions", {"action": "run"}, format="json").json()
    assert (ran["runs"][0]["phase"], ran["runs"][0]["by_hand"]) == ("pending", True)
    suspended = alice.post(f"{url_of(schedule)}/actions", {"action": "suspend"}, format="json").json()
    assert (suspended["is_suspended"], suspended["next_times"]) == (True, [])
    assert not alice.post(f"{url_of(schedule)}/actions", {"action": "resume"}, format="json").json()["is_suspended"]
    assert alice.delete(url_of(schedule)).status_code == 204
    assert alice.get(url_of(schedule)).status_code == 404
    assert Job.objects.count() == 1


def test_skipped_run_has_a_reason(alice, schedule):
    alice.patch(url_of(schedule), {"concurrency": "Forbid"}, format="json")
    for hours in (1, 2):
        services.start_due(now=clock.now() + timedelta(hours=hours))
    skipped, started = alice.get(url_of(schedule)).json()["runs"]
    assert (started["outcome"], started["sentence"]) == ("started", "")
    assert (skipped["outcome"], skipped["reason"], skipped["job"]) == ("skipped", "still_running", None)
    assert started["job"] in skipped["sentence"]


def test_members_can_read_and_outsiders_get_404(bob, charlie, schedule):
    assert bob.get(url_of(schedule)).status_code == 200
    assert bob.post(f"{url_of(schedule)}/actions", {"action": "run"}, format="json").status_code == 403
    assert charlie.get(url_of(schedule)).status_code == 404
    assert charlie.get(SCHEDULES).json()["results"] == []
