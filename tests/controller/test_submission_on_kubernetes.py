"""Jobs of every format and entry point run to completion on Kubernetes: one row of the table for each.

A job comes as its users send it, through the endpoint that they use. The nodes only pretend to run programs, so the
test ends each pod. Other tests check that the pods have the right content.
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
from tests.controller.fleet import Fleet, are_all_over, audit
from tests.domain.formats.test_kubeflow import manifest
from tests.kubernetes.control_plane import ControlPlane
from tests.support.examples import EVERY

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
RAYJOB = """
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: rayjob}
spec:
  entrypoint: python count.py
  rayClusterSpec:
    headGroupSpec:
      template: {spec: {containers: [{name: head, image: ray, resources: {limits: {cpu: 250m}}}]}}
    workerGroupSpecs:
    - groupName: small
      replicas: 2
      template: {spec: {containers: [{name: worker, image: ray, resources: {limits: {cpu: 250m}}}]}}
"""
SPARKAPPLICATION = """
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: sparkapplication}
spec:
  type: Scala
  mode: cluster
  image: spark
  mainApplicationFile: local:///opt/spark/examples.jar
  driver: {coreRequest: 250m, memory: 128m}
  executor: {coreRequest: 250m, memory: 128m, instances: 2}
"""
FLINKDEPLOYMENT = """
apiVersion: flink.apache.org/v1beta1
kind: FlinkDeployment
metadata: {name: flinkdeployment}
spec:
  image: flink
  jobManager: {resource: {cpu: 0.25, memory: 512m}}
  taskManager: {resource: {cpu: 0.25, memory: 512m}}
  job: {jarURI: "local:///opt/flink/usrlib/words.jar", parallelism: 2}
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
class EntryPoint:
    """An entry point: its name, a function that submits something there, and how many jobs this creates at once."""

    name: str
    send: Send
    jobs: int = 1


def text(address: str, document: str, kind: str = "application/yaml") -> Send:
    """Sends a text, as a file."""
    return lambda client: client.generic("POST", address, document, content_type=kind)


def example(name: str) -> str:
    """An example manifest. Environments exist only on local clusters; here an image contains them."""
    return re.sub(r"hekla.io/environment: \w+", "", (EXAMPLES / name).read_text())


def kubeflow(
    kind: str, *roles: str, version: str = "kubeflow.org/v1", more: dict[str, Any] | None = None
) -> EntryPoint:
    """A manifest of a Kubeflow kind: two replicas of the last role, one of each other."""
    name = f"{kind}-{version.rpartition('/')[2]}".lower()
    replicas = {role: (2 if role == roles[-1] else 1, "Never") for role in roles}
    document = manifest(kind, replicas, version=version, more=more).replace("name: a\n", f"name: {name}\n")
    return EntryPoint(name, text(f"{API}/jobs", document))


def ok(answer: Any) -> dict[str, Any]:
    """Returns the content of a successful response."""
    assert answer.status_code in (200, 201, 202), answer.content.decode()
    found: dict[str, Any] = answer.json() if answer.content else {}
    return found


def preset(client: APIClient) -> Any:
    """Saves a preset and submits a copy of it, as a user does who repeats a job."""
    saved = ok(
        client.post(f"{API}/saved_templates", {"name": "usual", "spec": {"name": "preset", **JOB}}, format="json")
    )
    copy = ok(client.get(f"{API}/saved_templates/{saved['uid']}/copy"))
    return client.post(f"{API}/jobs", copy["spec"], format="json")


def gallery(client: APIClient) -> Any:
    """An admin of the tenant publishes a job in the gallery; it is submitted with one changed value."""
    open_fields = [{"place": "tasks.main.replicas", "least": "1", "most": "4"}]
    card = {"title": "Ours", "tenant": "lab", "spec": {"name": "gallery", **JOB}, "fields_open": open_fields}
    made = ok(client.post(f"{API}/gallery", card, format="json"))
    body = {"name": "from-gallery", "values": {"tasks.main.replicas": "3"}}
    return client.post(f"{API}/gallery/{made['uid']}/jobs", body, format="json")


def template(client: APIClient) -> Any:
    """A saved template, and a flow that names it."""
    ok(client.post(f"{API}/templates", {"name": "kept", **JOB}, format="json"))
    return client.post(f"{API}/flows", {"name": "by-name", "steps": [{"name": "a", "template": "kept"}]}, format="json")


def schedule(document: Any, kind: str) -> Send:
    """Creates a schedule and runs it by hand."""

    def send(client: APIClient) -> Any:
        body = document if isinstance(document, str) else {**document, "job": JOB}
        made = client.generic("POST", f"{API}/schedules", body, content_type=kind) if isinstance(body, str) else (
            client.post(f"{API}/schedules", body, format="json")
        )  # fmt: skip
        return client.post(f"{API}/schedules/{ok(made)['schedule']['uid']}/actions", {"action": "run"}, format="json")

    return send


KUBEFLOW = (
    kubeflow("PyTorchJob", "Master", "Worker"),
    kubeflow("TFJob", "PS", "Worker"),
    kubeflow("MPIJob", "Launcher", "Worker"),
    kubeflow("MPIJob", "Launcher", "Worker", version="kubeflow.org/v2beta1"),
    kubeflow("PaddleJob", "Worker"),
    kubeflow("XGBoostJob", "Master", "Worker"),
    kubeflow("JAXJob", "Worker"),
)
ENTRY_POINTS = (
    EntryPoint("JobSpec", lambda client: client.post(f"{API}/jobs", {"name": "spec", **JOB}, format="json")),
    *(EntryPoint(f"example {name}", text(f"{API}/jobs", example(f"{name}/job.yaml"))) for name in
      ("rendezvous", "digits", "tensorflow", "mpi")[::EVERY]),
    *KUBEFLOW[::EVERY],
    EntryPoint("TrainJob", text(f"{API}/jobs", TRAINJOB)),
    EntryPoint("RayJob", text(f"{API}/jobs", RAYJOB)),
    EntryPoint("SparkApplication", text(f"{API}/jobs", SPARKAPPLICATION)),
    EntryPoint("FlinkDeployment", text(f"{API}/jobs", FLINKDEPLOYMENT)),
    EntryPoint("Kubernetes Job", text(f"{API}/jobs", KUBERNETES)),
    EntryPoint("JobConfig", text(f"{V2}/jobs", (EXAMPLES / "openpai" / "job.yaml").read_text(), "text/yaml")),
    EntryPoint("JobConfig of version 1",
         text(f"{V1}/user/alice/jobs", (EXAMPLES / "openpai" / "job.json").read_text(), "application/json")),
    EntryPoint("sweep", lambda client: client.post(
        f"{API}/batches", {"name": "lr", "parameters": {"lr": [0.1, 0.01]}, "job": SWEEP}, format="json"), jobs=2),
    EntryPoint("batch file", text(f"{API}/batches?name=both", "\n---\n".join(
        [example("rendezvous/job.yaml").replace("name: rendezvous", "name: in-a-file", 1),
         "{name: also-there, tasks: [{name: main, command: [ls]}]}"])), jobs=2),
    EntryPoint("preset", preset),
    EntryPoint("gallery", gallery),
    EntryPoint("schedule", schedule({"name": "hourly", "cron": "@hourly"}, "application/json")),
    EntryPoint("CronJob", schedule(CRONJOB, "application/yaml")),
    EntryPoint("flow", text(f"{API}/flows", (EXAMPLES / "flow" / "flow.yaml").read_text()), jobs=0),
    EntryPoint("template", template, jobs=0),
)  # fmt: skip


@pytest.fixture
def fleet(
    transactional_db: None, settings: Any, tmp_path: Path, small_cluster: ControlPlane, granted_namespace: str
) -> Iterator[Fleet]:
    settings.HEKLA_HOME = tmp_path / "home"
    with Fleet.with_own_nodes(small_cluster, granted_namespace, settings.HEKLA_HOME, machines=6) as made:
        yield made


@pytest.fixture
def alice(fleet: Fleet) -> APIClient:
    """An API client with Alice's token."""
    token = accounts.create_token(fleet.world.alice, name="test", lifetime=timedelta(hours=1), now=clock.now())
    return APIClient(HTTP_AUTHORIZATION=f"Bearer {token}")


def advance(fleet: Fleet) -> None:
    """Reconciles, advances flows as the beat does, and ends every running pod."""
    controllers.reconcile(fleet.world.cluster)
    flows.advance_all(now=clock.now())
    fleet.end_endless_pods()


@pytest.mark.kubernetes
def test_job_of_every_entry_point_completes(fleet: Fleet, alice: APIClient) -> None:
    made: dict[str, list[int]] = {}
    for entry in ENTRY_POINTS:
        before = set(Job.objects.values_list("pk", flat=True))
        answer = entry.send(alice)
        assert answer.status_code in (200, 201, 202), f"{entry.name}: {answer.content.decode()}"
        made[entry.name] = sorted(set(Job.objects.values_list("pk", flat=True)) - before)
        assert len(made[entry.name]) >= entry.jobs, entry.name
    fleet.until(lambda: bool(advance(fleet)) or (are_all_over() and not Flow.objects.filter(ended_at=None).exists()))
    ends = dict(Job.objects.values_list("pk", "phase"))
    assert [name for name, pks in made.items() if {ends[pk] for pk in pks} - {"completed"}] == [], describe()
    assert set(ends.values()) == {"completed"}, describe()
    assert set(Flow.objects.values_list("phase", flat=True)) == {"succeeded"}
    audit(fleet)
