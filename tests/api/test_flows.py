"""Templates and flows over REST, as documents and as Volcano's manifests."""

from typing import Any

import pytest
from tests.api.conftest import job

from hekla.apps.jobs.models import Job

JOB = {"tasks": job()["tasks"]}
FLOW: dict[str, Any] = {
    "name": "nightly",
    "steps": [{"name": "a", "job": JOB}, {"name": "b", "template": "train", "depends_on": ["a"]}],
}
MANIFEST = """\
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: prepare, labels: {a: b}}
spec: {tasks: [{name: main, template: {spec: {containers: [{name: m, command: ["true"]}]}}}]}
"""
FLOW_MANIFEST = f"""{MANIFEST}---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {{name: weekly}}
spec:
  flows:
    - name: prepare
    - name: train
      template: prepare
      dependsOn: {{targets: [prepare]}}
      patch: {{jobSpec: {{maxRetry: 5, tuning: 1}}}}
"""


def send(client: Any, address: str, text: str, **query: str) -> Any:
    words = "&".join(f"{name}={value}" for name, value in query.items())
    return client.post(f"/api/v1/{address}?{words}", text.encode(), content_type="application/yaml")


def save_template(client: Any, name: str = "train") -> Any:
    return client.post("/api/v1/templates", job(name), format="json")


def test_template_is_created_changed_and_deleted(alice, bob):
    made = save_template(alice)
    assert (made.status_code, made.json()["warnings"]) == (201, [])
    [template] = made.json()["templates"]
    assert template["spec"]["name"] == "train"
    assert "kind: JobTemplate" in template["manifest"]
    alice.post("/api/v1/templates", job("train", priority=3), format="json")
    address = f"/api/v1/templates/{template['uid']}"
    assert alice.get(address).json()["spec"]["priority"] == 3
    assert [row["name"] for row in bob.get("/api/v1/templates").json()["results"]] == ["train"]
    assert bob.delete(address).status_code == 403
    assert alice.delete(address).status_code == 204
    assert alice.get(address).status_code == 404


def test_a_flow_document_is_started_listed_stopped_and_deleted(alice, bob):
    save_template(alice)
    made = alice.post("/api/v1/flows", FLOW, format="json")
    assert made.status_code == 201
    flow = made.json()["flow"]
    assert (flow["phase"], flow["is_over"], [s["phase"] for s in flow["steps"]]) == (
        "pending",
        False,
        ["pending", "waits"],
    )
    assert flow["steps"][1]["reasons"] == ["Waiting for step a to complete."]
    assert flow["steps"][0]["job"] == str(Job.objects.get().uid)
    address = f"/api/v1/flows/{flow['uid']}"
    assert [row["name"] for row in bob.get("/api/v1/flows", {"phase": "pending"}).json()["results"]] == ["nightly"]
    assert bob.get("/api/v1/flows", {"phase": "failed"}).json()["results"] == []
    assert bob.post(f"{address}/stop").status_code == 403
    assert alice.delete(address).status_code == 409
    stopped = alice.post(f"{address}/stop").json()
    assert (stopped["phase"], stopped["is_over"]) == ("terminated", True)
    assert [step["phase"] for step in stopped["steps"]] == ["terminated", "skipped"]
    assert alice.delete(address).status_code == 204


def test_all_problems_are_reported_and_nothing_starts(alice):
    wrong = {"name": "n", "steps": [{"name": "a", "template": "trian", "depends_on": ["c"]}, {"name": "a"}]}
    answer = alice.post("/api/v1/flows", wrong, format="json")
    assert answer.status_code == 400
    assert [error["path"] for error in answer.json()["errors"]] == ["steps.1.name", "steps.0.depends_on.0"]
    save_template(alice)
    answer = alice.post("/api/v1/flows", {"name": "n", "steps": [{"name": "trian"}]}, format="json")
    assert answer.json()["errors"] == [
        {"path": "steps.0.name", "message": "Unknown template “trian”. Did you mean “train”?"}
    ]


def test_manifest_saves_templates_starts_flow_and_round_trips(alice):
    made = send(alice, "flows", FLOW_MANIFEST)
    assert made.status_code == 201
    assert made.json()["warnings"] == [
        "JobTemplate prepare.metadata.labels: ignored.",
        "steps.1.patch.spec.tuning: ignored.",
    ]
    assert [row["name"] for row in alice.get("/api/v1/templates").json()["results"]] == ["prepare"]
    manifest = made.json()["flow"]["manifest"]
    assert "maxRetry: 5" in manifest
    again = send(alice, "flows", manifest.replace("name: weekly", "name: again", 1))
    assert again.status_code == 201
    assert again.json()["flow"]["spec"]["steps"] == made.json()["flow"]["spec"]["steps"]


def test_problems_have_manifest_paths(alice):
    text = FLOW_MANIFEST.replace("maxRetry: 5", "maxRetry: many")
    [error] = send(alice, "flows", text).json()["errors"]
    assert error["path"] == "spec.flows[1].patch.jobSpec.maxRetry"
    assert alice.get("/api/v1/templates").json()["results"] == []


def test_dry_run_saves_and_starts_nothing(alice):
    answer = send(alice, "flows", FLOW_MANIFEST, dry_run="1")
    assert answer.status_code == 200
    assert [(each["step"], each["spec"]["name"]) for each in answer.json()["jobs"]] == [
        ("prepare", "weekly-prepare"),
        ("train", "weekly-train"),
    ]
    assert alice.get("/api/v1/flows").json()["results"] == alice.get("/api/v1/templates").json()["results"] == []


def test_same_idempotency_key_returns_the_same_flow(alice):
    save_template(alice)
    sent = [alice.post("/api/v1/flows", FLOW, format="json", headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert [answer.status_code for answer in sent] == [201, 200]
    assert sent[0].json()["flow"]["uid"] == sent[1].json()["flow"]["uid"]


def test_wrong_endpoint_names_the_right_one(alice):
    assert "Send templates alone to" in send(alice, "flows", MANIFEST).json()["detail"]
    assert "Send flows to" in send(alice, "templates", FLOW_MANIFEST).json()["detail"]
    assert "/api/v1/flows" in send(alice, "jobs", FLOW_MANIFEST).json()["detail"]


def test_outsiders_get_404(alice, charlie):
    save_template(alice)
    flow = alice.post("/api/v1/flows", FLOW, format="json").json()["flow"]
    template = alice.get("/api/v1/templates").json()["results"][0]
    for address in (f"flows/{flow['uid']}", f"templates/{template['uid']}"):
        assert charlie.get(f"/api/v1/{address}").status_code == 404
        assert charlie.delete(f"/api/v1/{address}").status_code == 404
    assert charlie.post(f"/api/v1/flows/{flow['uid']}/stop").status_code == 404
    assert charlie.post("/api/v1/flows?tenant=lab", FLOW, format="json").status_code == 404
    assert charlie.get("/api/v1/flows").json()["results"] == []


@pytest.mark.parametrize(
    "body",
    [
        {"name": "n", "steps": 1},
        {"name": "n", "steps": [1]},
        {"name": "n", "steps": [{"name": ["x"], "depends_on": [{}]}]},
        {"name": "n", "steps": [{"name": "a", "job": JOB, "patch": {"spec": {"tasks": {"worker": []}}}}]},
        {"name": "n", "steps": [{"name": "a", "job": JOB, "patch": {"spec": None}}]},
        {"name": "n", "steps": [{"name": "a", "job": JOB, "patch": {"x": "\0"}}]},
        {"name": "n", "steps": [{"name": "a", "job": [], "probes": [{"port": True}]}]},
        {"name": None, "steps": [{"depends_on": ["a"]}, {"name": "a"}]},
    ],
)
def test_malformed_flows_return_errors(alice, body):
    answer = alice.post("/api/v1/flows", body, format="json")
    assert answer.status_code == 400
    assert answer.json()["errors"]
