"""A cluster that the real Volcano schedules, its jobs, and what they leave in it."""

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.controller import conftest
from tests.controller.conftest import World
from tests.kubernetes.control_plane import LOG_LINES, ControlPlane, RequestRefused
from tests.kubernetes.volcano.processes import Volcano

from hekla.apps.job_history import labels as wording
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.backends.base import PodKey
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase
from hekla.domain.policies import LifecycleAction
from hekla.domain.scaling import JobScale, TaskScale
from hekla.lib import clock

SIZE = {"cpu": "4", "memory": "8Gi", "pods": "20"}
LOG = "".join(f"{line}\n" for line in LOG_LINES).encode()
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups"
PODS = "/api/v1/namespaces/{}/pods"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"


@pytest.fixture(autouse=True)
def long_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits longer: Volcano's controllers and its scheduler also need time."""
    monkeypatch.setattr(conftest, "LAST_SECONDS", 90.0)


@pytest.fixture
def plane(volcano: Volcano) -> ControlPlane:
    return volcano.plane


@pytest.fixture
def delegated(
    plane: ControlPlane, volcano_namespace: str, transactional_db: None, settings: Any, tmp_path: Path
) -> Iterator[World]:
    """A node of this test with four CPUs, in a cluster that Volcano schedules."""
    settings.HEKLA_HOME = tmp_path
    controllers.reset()
    labels = {"hekla.dev/test": volcano_namespace}
    machines = plane.add_nodes(1, allocatable=SIZE, labels=labels)
    (tmp_path / "kubeconfigs").mkdir()
    (tmp_path / "kubeconfigs" / "test").write_text(json.dumps(plane.kubeconfig(plane.user_token)))
    config = {"kubeconfig": "test", "namespace": volcano_namespace, "node_labels": labels, "scheduler": "volcano"}
    world = World.found("kubernetes", config)
    yield world
    backend_of(world.cluster).close()
    controllers.reset()
    plane.remove_nodes(machines)


def submit(world: World, name: str = "one", **fields: Any) -> Job:
    env = {"HEKLA_SIM_SECONDS": str(fields.pop("seconds", 0.5)), "HEKLA_SIM_EXIT": str(fields.pop("exit_code", 0))}
    task = {
        "name": "main",
        "command": ["x"],
        "replicas": fields.pop("replicas", 1),
        "resources": {"cpu": fields.pop("cpu", "1")},
        "env": env,
        "volume_mounts": fields.pop("mounts", []),
        "success_policy": fields.pop("success_policy", "AllReplicas"),
        **fields.pop("settings", {}),
    }
    spec = JobSpec.parse({"name": name, "tasks": [task], **fields})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def phase(job: Job) -> str:
    return Job.objects.get(pk=job.pk).phase


def reconcile_until_phase(world: World, job: Job, expected: JobPhase) -> None:
    world.reconcile_until(lambda: phase(job) == expected)


def list_jobs(plane: ControlPlane, namespace: str) -> list[dict[str, Any]]:
    return plane.request("GET", JOBS.format(namespace))["items"]


def reason_of(job: Job) -> str:
    waiting = Job.objects.get(pk=job.pk).waiting
    return wording.reason(waiting[0]) if waiting else ""


def is_running(plane: ControlPlane, namespace: str, name: str) -> bool:
    states = {one["metadata"]["name"]: one.get("status", {}).get("state", {}) for one in list_jobs(plane, namespace)}
    return states[name].get("phase") == "Running"


def list_groups(volcano: Volcano, namespace: str) -> list[dict[str, Any]]:
    return volcano.plane.request("GET", GROUPS.format(namespace))["items"]


def end_pods(plane: ControlPlane, namespace: str, suffix: str = "") -> None:
    """Ends the running pods with this end of their names now, with their exit code, whatever their duration."""
    change = {"metadata": {"annotations": {"hekla.dev/test-ends-at": clock.now().isoformat()}}}
    for pod in plane.request("GET", PODS.format(namespace))["items"]:
        if pod.get("status", {}).get("phase") == "Running" and pod["metadata"]["name"].endswith(suffix):
            named = f"{PODS.format(namespace)}/{pod['metadata']['name']}"
            plane.request("PATCH", named, change, content_type="application/merge-patch+json")


def disturb_restart(volcano: Volcano, namespace: str) -> None:
    """Reproduces a race: the job restarts while the scheduler looks at it, so its PodGroup is Pending when deleted.

    The job restarts because its pods end here. A fixed duration could be over too early on a slow machine.

    Volcano's controller usually takes the old PodGroup for the next one and waits. If it created the next one, that is
    deleted.
    """
    plane, place = volcano.plane, GROUPS.format(namespace)
    (old,) = list_groups(volcano, namespace)
    change = {"status": {"phase": "Pending"}}
    named = f"{place}/{old['metadata']['name']}"
    plane.request("PATCH", named, change, content_type="application/merge-patch+json")
    end_pods(plane, namespace)
    plane.wait_until(lambda: list_jobs(plane, namespace)[0]["status"]["state"]["phase"] == "Restarting", 90.0)
    uid = old["metadata"]["uid"]
    plane.wait_until(lambda: uid not in [one["metadata"]["uid"] for one in list_groups(volcano, namespace)], 60.0)
    time.sleep(2.0)
    with contextlib.suppress(RequestRefused):  # usually it is already gone
        plane.request("DELETE", named)


def log_of(world: World, job: Job, *, attempt: int) -> bytes:
    key = PodKey(job.uid.hex, "main", 0, attempt)
    return backend_of(world.cluster).logs(key, offset=0, limit=1000).data


def resize(world: World, job: Job, size: TaskScale) -> None:
    services.scale(job, JobScale(tasks={"main": size}), user=world.alice, now=clock.now())


def send(world: World, job: Job, action: LifecycleAction) -> None:
    services.command(job, action, user=world.alice, now=clock.now())
