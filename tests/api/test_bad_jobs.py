"""An invalid job gets an answer with the path of the field and the reason."""

import pytest

JOBS = "/api/v1/jobs"


def _task(**changes):
    return {"name": "worker", "command": ["true"], **changes}


@pytest.mark.parametrize(
    ("document", "status", "code", "path", "words"),
    [
        ({"tasks": [_task(resources={"cpu": "64"})]}, 400, "invalid", "tasks.0.resources.cpu", "largest node has 4"),
        ({"tasks": [_task(replicas=30, resources={"cpu": "1"})]}, 400, "invalid", "tasks", "never start"),
        ({"queue": "nowhere"}, 409, "refused", "queue", "Available queues"),
        ({"queue": "theirs"}, 409, "refused", "queue", "cannot use a queue"),
        ({"tasks": [_task(replicas="two")]}, 400, "invalid", "tasks.0.replicas", "integer"),
        ({"tasks": [_task(environment="nope")]}, 400, "invalid", "tasks.0.environment", "Unknown environment"),
        ({"tasks": []}, 400, "invalid", "tasks", ""),
        ({"name": "Ä"}, 400, "invalid", "name", "lowercase letters"),
        ({"replikas": 3}, 400, "invalid", "replikas", ""),
    ],
)
def test_errors_name_the_field(alice, a_job, document, status, code, path, words):
    answer = alice.post(JOBS, {**a_job, **document}, format="json")
    body = answer.json()
    assert answer["Content-Type"] == "application/problem+json"
    assert (answer.status_code, body["status"], body["code"]) == (status, status, code)
    assert [error for error in body["errors"] if error["path"] == path and words in error["message"]], body


def test_all_problems_are_reported_at_once(alice):
    body = alice.post(JOBS, {"name": "X", "tasks": [_task(replicas=-1)]}, format="json").json()
    assert {error["path"] for error in body["errors"]} >= {"name", "tasks.0.replicas"}
    assert "errors" in body["detail"]


def test_closed_queue_error_names_the_time(alice, root, a_job):
    assert root.patch("/api/v1/queues/default", {"is_open": False}, format="json").status_code == 200
    body = alice.post(JOBS, a_job, format="json").json()
    assert (body["status"], body["code"], body["errors"][0]["path"]) == (409, "queue_closed", "queue")
    assert "closed since" in body["detail"]


def test_duplicate_name_returns_409(alice, bob, a_job):
    assert alice.post(JOBS, a_job, format="json").status_code == 201
    body = bob.post(JOBS, a_job, format="json").json()
    assert (body["status"], body["code"], body["errors"][0]["path"]) == (409, "name_taken", "name")


MANIFEST = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: x}
spec:
  minAvailable: many
  tasks:
    - name: worker
      replicas: [1]
      template: {spec: {containers: [{command: true}]}}
"""


def test_yaml_errors_have_manifest_paths(alice):
    body = alice.post(JOBS, MANIFEST, content_type="application/yaml").json()
    assert body["status"] == 400
    paths = {error["path"] for error in body["errors"]}
    assert {"spec.minAvailable", "spec.tasks[0].replicas"} <= paths
    assert any("command" in path for path in paths)


@pytest.mark.parametrize("kind", ["application/yaml", "application/json"])
def test_oversized_body_error_names_both_sizes(alice, kind):
    body = alice.post(JOBS, b"a: " + b"x" * 10 * 1024**2, content_type=kind).json()
    assert (body["status"], body["code"]) == (413, "too_large")
    assert "10.0 MiB" in body["detail"]
    assert "The limit is 1 MiB" in body["detail"]


@pytest.mark.parametrize(
    ("kind", "text", "status"),
    [
        ("application/json", "{", 400),
        ("application/json", "[]", 400),
        ("application/json", '{"priority": NaN}', 400),
        ("application/json", "[" * 100_000, 400),
        ("application/yaml", "a: [", 400),
        ("application/yaml", "", 400),
        ("application/yaml", b"\xff\xfe\x00", 400),
        ("text/html", "<p>", 415),
        ("multipart/form-data; boundary=x", "--x--", 415),
    ],
)
def test_unreadable_body_returns_problem_json(alice, kind, text, status):
    answer = alice.post(JOBS, text, content_type=kind)
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    assert answer.json()["detail"]
