"""What people bring to any door of Hekla runs to its end on Kubernetes: one row of the table for each door.

A job comes as its people send it, through the door that they use. No program runs on pretended machines, so the test
says of each pod that it is over; that the pods are the right ones is held elsewhere.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient
from tests.api.openpai import V1, V2
from tests.controller.conftest import describe
from tests.controller.fleet import Fleet, are_over, audit
from tests.domain.formats.test_kubeflow import manifest
from tests.kubernetes.control_plane import ControlPlane

from hekla.apps.accounts import services as accounts
from hekla.apps.flows import services as flows
from hekla.apps.flows.models import Flow
from hekla.apps.jobs.models import Job
from hekla.controller.controllers import controllers
from hekla.lib import clock
from hekla.lib.checkout import CHECKOUT

EXAMPLES = CHECKOUT / "platform" / "examples"
API = "/api/v1"
JOB: dict[str, Any] = {"tasks": [{"name": "main", "command": ["train"], "resources": {"cpu": "250m"}}]}
SWEEP = {"tasks": [{**JOB["tasks"][0], "command": ["train", "{{ lr }}"]}]}
TRAINJOB = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: trainjob}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {image: torch, command: [torchrun], numNodes: 2, resourcesPerNode: {requests: {cpu: 250m}}}
"""
KUBERNETES = """
apiVersion: batch/v1
kind: Job
metadata: {name: kubernetes-job}
spec:
  completions: 3
  parallelism: 3
  template: {spec: {restartPolicy: Never, containers: [{name: pi, image: perl, command: [perl]}]}}
"""
CRONJOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 2 * * *"
  jobTemplate:
    spec: {tasks: [{name: main, template: {spec: {containers: [{name: m, command: ["true"]}]}}}]}
"""
Send = Callable[[APIClient], Any]


@dataclass(frozen=True)
class Door:
    """How it is called, how something is brought there, and how many jobs that makes at once."""

    name: str
    send: Send
    jobs: int = 1


def text(address: str, document: str, kind: str = "application/yaml") -> Send:
    """A text, as a file is sent."""
    return lambda client: client.generic("POST", address, document, content_type=kind)


def example(name: str) -> str:
    """A manifest of ours. Environments are packages on machines of the kind local; here an image has them."""
    return re.sub(r"hekla.io/environment: \w+", "", (EXAMPLES / name).read_text())


def kubeflow(kind: str, *roles: str, version: str = "kubeflow.org/v1", more: dict[str, Any] | None = None) -> Door:
    """One of the kinds of Kubeflow's operators: two of the last role, one of each other."""
    name = f"{kind}-{version.rpartition('/')[2]}".lower()
    replicas = {role: (2 if role == roles[-1] else 1, "Never") for role in roles}
    document = manifest(kind, replicas, version=version, more=more).replace("name: a\n", f"name: {name}\n")
    return Door(name, text(f"{API}/jobs", document))


def ok(answer: Any) -> dict[str, Any]:
    """What a door says that took something in."""
    assert answer.status_code in (200, 201, 202), answer.content.decode()
    found: dict[str, Any] = answer.json() if answer.content else {}
    return found


def preset(client: APIClient) -> Any:
    """Kept under a name, then begun with, as a person does who submits the same again."""
    kept = ok(client.post(f"{API}/presets", {"name": "usual", "spec": {"name": "preset", **JOB}}, format="json"))
    begun = ok(client.get(f"{API}/presets/{kept['uid']}/copy"))
    return client.post(f"{API}/jobs", begun["spec"], format="json")


def gallery(client: APIClient) -> Any:
    """Published by an admin of the tenant, begun with one value of one's own."""
    open_fields = [{"place": "tasks.main.replicas", "least": "1", "most": "4"}]
    card = {"title": "Ours", "tenant": "lab", "spec": {"name": "gallery", **JOB}, "fields_open": open_fields}
    made = ok(client.post(f"{API}/gallery", card, format="json"))
    wish = {"name": "from-gallery", "values": {"tasks.main.replicas": "3"}}
    return client.post(f"{API}/gallery/{made['uid']}/jobs", wish, format="json")


def template(client: APIClient) -> Any:
    """A template that is kept, and a flow that names it."""
    ok(client.post(f"{API}/templates", {"name": "kept", **JOB}, format="json"))
    return client.post(f"{API}/flows", {"name": "by-name", "steps": [{"name": "a", "template": "kept"}]}, format="json")


def schedule(document: Any, kind: str) -> Send:
    """Made, and run by hand."""

    def send(client: APIClient) -> Any:
        body = document if isinstance(document, str) else {**document, "job": JOB}
        made = client.generic("POST", f"{API}/schedules", body, content_type=kind) if isinstance(body, str) else (
            client.post(f"{API}/schedules", body, format="json")
        )  # fmt: skip
        return client.post(f"{API}/schedules/{ok(made)['schedule']['uid']}/actions", {"action": "run"}, format="json")

    return send


DOORS = (
    Door("JobSpec", lambda client: client.post(f"{API}/jobs", {"name": "spec", **JOB}, format="json")),
    *(Door(f"example {name}", text(f"{API}/jobs", example(f"{name}/job.yaml"))) for name in
      ("rendezvous", "digits", "tensorflow", "mpi")),
    kubeflow("PyTorchJob", "Master", "Worker"),
    kubeflow("TFJob", "PS", "Worker"),
    kubeflow("MPIJob", "Launcher", "Worker"),
    kubeflow("MPIJob", "Launcher", "Worker", version="kubeflow.org/v2beta1"),
    kubeflow("PaddleJob", "Worker"),
    kubeflow("XGBoostJob", "Master", "Worker"),
    kubeflow("JAXJob", "Worker"),
    Door("TrainJob", text(f"{API}/jobs", TRAINJOB)),
    Door("Kubernetes Job", text(f"{API}/jobs", KUBERNETES)),
    Door("JobConfig", text(f"{V2}/jobs", (EXAMPLES / "openpai" / "job.yaml").read_text(), "text/yaml")),
    Door("JobConfig of version 1",
         text(f"{V1}/user/alice/jobs", (EXAMPLES / "openpai" / "job.json").read_text(), "application/json")),
    Door("sweep", lambda client: client.post(
        f"{API}/batches", {"name": "lr", "parameters": {"lr": [0.1, 0.01]}, "job": SWEEP}, format="json"), jobs=2),
    Door("batch file", text(f"{API}/batches?name=both", "\n---\n".join(
        [example("rendezvous/job.yaml").replace("name: rendezvous", "name: in-a-file", 1),
         "{name: also-there, tasks: [{name: main, command: [ls]}]}"])), jobs=2),
    Door("preset", preset),
    Door("gallery", gallery),
    Door("schedule", schedule({"name": "hourly", "cron": "@hourly"}, "application/json")),
    Door("CronJob", schedule(CRONJOB, "application/yaml")),
    Door("flow", text(f"{API}/flows", (EXAMPLES / "flow" / "flow.yaml").read_text()), jobs=0),
    Door("template", template, jobs=0),
)  # fmt: skip


@pytest.fixture
def fleet(
    transactional_db: None, settings: Any, tmp_path: Path, small_cluster: ControlPlane, given_namespace: str
) -> Iterator[Fleet]:
    settings.HEKLA_HOME = tmp_path / "home"
    with Fleet.beside_others(small_cluster, given_namespace, settings.HEKLA_HOME, machines=6) as made:
        yield made


@pytest.fixture
def alice(fleet: Fleet) -> APIClient:
    """Her program, with a token of hers."""
    token = accounts.create_token(fleet.world.alice, name="test", lifetime=timedelta(hours=1), now=clock.now())
    return APIClient(HTTP_AUTHORIZATION=f"Bearer {token}")


def go_on(fleet: Fleet) -> None:
    """A turn, what the beat asks for meanwhile, and every program that runs is over."""
    controllers.reconcile(fleet.world.cluster)
    flows.advance_all(now=clock.now())
    fleet.end_what_has_no_end()


@pytest.mark.kubernetes
def test_what_comes_through_any_door_runs_to_its_end(fleet: Fleet, alice: APIClient) -> None:
    made: dict[str, list[int]] = {}
    for door in DOORS:
        before = set(Job.objects.values_list("pk", flat=True))
        answer = door.send(alice)
        assert answer.status_code in (200, 201, 202), f"{door.name}: {answer.content.decode()}"
        made[door.name] = sorted(set(Job.objects.values_list("pk", flat=True)) - before)
        assert len(made[door.name]) >= door.jobs, door.name
    fleet.until(lambda: bool(go_on(fleet)) or (are_over() and not Flow.objects.filter(ended_at=None).exists()))
    ends = dict(Job.objects.values_list("pk", "phase"))
    assert [name for name, pks in made.items() if {ends[pk] for pk in pks} - {"completed"}] == [], describe()
    assert set(ends.values()) == {"completed"}, describe()
    assert set(Flow.objects.values_list("phase", flat=True)) == {"succeeded"}
    audit(fleet)
