"""Batches over REST."""

import pytest
from tests.support.metrics import print_metrics

from hekla.apps.batches.models import BatchJob
from hekla.apps.jobs.models import Job

BATCHES = "/api/v1/batches"
SWEEP = {
    "name": "lr",
    "parameters": {"lr": [0.1, 0.01]},
    "job": {"tasks": [{"name": "main", "command": ["train", "--lr", "{{ lr }}"], "resources": {"cpu": "1"}}]},
}
MANIFESTS = """\
{name: first, tasks: [{name: main, command: [ls]}]}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: second, labels: {a: b}}
spec: {tasks: [{name: main, template: {spec: {containers: [{name: m, command: ["true"]}]}}}]}
"""


@pytest.fixture
def batch(alice):
    answer = alice.post(BATCHES, SWEEP, format="json")
    assert answer.status_code == 201, answer.json()
    return answer.json()["batch"]


def url_of(batch):
    return f"{BATCHES}/{batch['uid']}"


def send(client, text, query="name=both"):
    return client.generic("POST", f"{BATCHES}?{query}", text, content_type="application/yaml")


def test_sweep_is_submitted_and_described(alice, batch):
    body = alice.get(url_of(batch)).json()
    assert (body["kind"], body["phases"], body["owner"]) == ("sweep", {"pending": 2}, "alice")
    assert [(job["number"], job["job"], job["parameters"]) for job in body["jobs"]] == [
        (1, "lr-1", {"lr": "0.1"}), (2, "lr-2", {"lr": "0.01"}),
    ]  # fmt: skip
    assert [batch["name"] for batch in alice.get(BATCHES).json()["results"]] == ["lr"]


def test_dry_run_submits_nothing(alice):
    answer = alice.post(f"{BATCHES}?dry_run=1", SWEEP, format="json")
    assert (answer.status_code, answer.json()["size"]) == (200, 2)
    assert answer.json()["jobs"][1]["spec"]["tasks"][0]["command"] == ["train", "--lr", "0.01"]
    assert send(alice, MANIFESTS, "name=both&dry_run=1").json()["size"] == 2
    assert not Job.objects.exists()


def test_manifests_are_submitted_together(alice):
    answer = send(alice, MANIFESTS)
    assert answer.status_code == 201, answer.json()
    assert [job["job"] for job in answer.json()["batch"]["jobs"]] == ["first", "second"]
    assert answer.json()["warnings"] == ["second: metadata.labels: ignored."]


@pytest.mark.parametrize(
    ("changes", "status", "path"),
    [
        ({"parameters": {}}, 400, "parameters"),
        ({"parameters": []}, 400, "parameters"),
        ({"parameters": {"lr": [None]}}, 400, "parameters.lr.0"),
        ({"parameters": {"x": [1]}}, 400, "job.tasks.0.command.2"),
        ({"job": {}}, 400, "job.tasks"),
        ({"name": "\u0000"}, 400, "name"),
        ({"how": "perhaps"}, 400, "how"),
        ({"parameters": {"lr": {"low": 0, "high": 1e308}}, "how": "random", "count": 2}, 400, "parameters.lr.high"),
        ({"job": {"tasks": [{"name": "m", "command": ["{{ lr }}"], "resources": {"cpu": "64"}}]}},
         400, "jobs.1.tasks.0.resources.cpu"),
    ],
)  # fmt: skip
def test_errors_name_the_field(alice, changes, status, path):
    answer = alice.post(BATCHES, {**SWEEP, **changes}, format="json")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (status, path)
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("text", "query", "path"),
    [
        (MANIFESTS, "", "name"),
        (MANIFESTS.replace("second", "Second"), "name=x", "document 2.metadata.name"),
        (MANIFESTS.replace("second", "first"), "name=x", "jobs.2.name"),
    ],
)
def test_manifest_errors_name_the_field(alice, text, query, path):
    answer = send(alice, text, query)
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, path)
    assert not Job.objects.exists()


def test_batch_is_stopped_and_failed_jobs_are_retried(alice, batch):
    stopped = alice.post(f"{url_of(batch)}/actions", {"action": "stop"}, format="json").json()
    assert set(stopped["phases"]) <= {"aborting", "aborted"}
    Job.objects.update(phase="failed")
    again = alice.post(f"{url_of(batch)}/actions", {"action": "retry"}, format="json").json()
    assert [(job["job"], job["attempt"], job["phase"]) for job in again["jobs"]] == [
        ("lr-1-r2", 2, "pending"), ("lr-2-r2", 2, "pending"),
    ]  # fmt: skip
    assert alice.post(f"{url_of(batch)}/actions", {"action": "dance"}, format="json").status_code == 400


def test_members_can_read_and_outsiders_get_404(bob, charlie, batch):
    assert bob.get(url_of(batch)).status_code == 200
    assert bob.post(f"{url_of(batch)}/actions", {"action": "stop"}, format="json").status_code == 403
    assert charlie.get(url_of(batch)).status_code == 404
    assert charlie.get(BATCHES).json()["results"] == []


def test_metrics_and_the_best_job(alice, batch):
    for member, values in zip(BatchJob.objects.order_by("number"), ((0.5, 0.2), (0.1, 0.3)), strict=True):
        print_metrics(member.job, {"loss": values})
    assert alice.get(url_of(batch)).json()["best"] is None, "no job completed"
    Job.objects.update(phase="completed")
    body = alice.get(url_of(batch)).json()
    assert (body["varying"], body["metrics"]) == (["lr"], ["loss"])
    assert body["jobs"][1]["metrics"] == {
        "loss": {"last": 0.3, "min": 0.1, "max": 0.3, "count": 2, "last_step": 1, "min_step": 0, "max_step": 1}
    }
    assert (body["best"]["job"], body["best"]["goal"], body["best"]["value"]) == ("lr-1", "min", 0.2)
    assert alice.get(f"{url_of(batch)}?value=min").json()["best"]["job"] == "lr-2"
    assert alice.get(f"{url_of(batch)}?metric=loss&goal=max").json()["best"]["job"] == "lr-2"
    assert alice.get(f"{url_of(batch)}?metric=other").json()["best"] is None
    assert alice.get(f"{url_of(batch)}?goal=upwards").status_code == 400


def test_jobs_are_compared(alice, bob, charlie, batch):
    uids = [job["uid"] for job in batch["jobs"]]
    for member, values in zip(BatchJob.objects.order_by("number"), ((0.5, 0.2), (0.1, 0.3)), strict=True):
        print_metrics(member.job, {"loss": values})
    Job.objects.update(phase="completed")
    address = f"/api/v1/jobs/compare?job={uids[1]}&job={uids[0]}"
    body = bob.get(address).json()
    assert [(job["uid"], job["parameters"]["lr"]) for job in body["jobs"]] == [(uids[1], "0.01"), (uids[0], "0.1")]
    assert (body["varying"], body["metrics"], body["best"]["job"], body["curves"]) == (["lr"], ["loss"], "lr-1", [])
    curves = alice.get(f"{address}&points=true&metric=loss").json()["curves"]
    assert curves[0] == {"uid": uids[1], "steps": [0.0, 1.0], "values": [0.1, 0.3], "seconds": [0.0, 1.0]}
    assert charlie.get(address).status_code == 404
    assert alice.get("/api/v1/jobs/compare").status_code == 400
    assert alice.get(f"/api/v1/jobs/compare?{'&'.join([f'job={uids[0]}'] * 51)}").status_code == 400
