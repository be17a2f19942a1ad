"""Autoscaling of a job over REST, on its page and on the form: what is submitted, and what is found."""

from datetime import timedelta
from typing import Any

import pytest

from hekla.apps.clusters.models import Node
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.usage.models import Sample
from hekla.lib import clock

JOBS = "/api/v1/jobs"
RULE = {"max_replicas": 4, "gpu_utilization": 70}


@pytest.fixture
def elastic(a_job: dict[str, Any]) -> dict[str, Any]:
    task = {**a_job["tasks"][0], "replicas": 2, "min_available": 1, "autoscaling": RULE}
    task["resources"] = {**task.get("resources", {}), "nvidia.com/gpu": "1"}
    return {**a_job, "tasks": [task]}


@pytest.fixture
def running(alice: Any, elastic: dict[str, Any]) -> Job:
    """With two pods that keep two GPUs 91 % busy."""
    Node.objects.update(allocatable={"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "4"})
    answer = alice.post(JOBS, elastic, format="json")
    assert answer.status_code == 201, answer.json()
    now, job = clock.now(), Job.objects.get()
    Job.objects.update(phase="running")
    for index in range(2):
        began = now - timedelta(minutes=5)
        pod = Pod.objects.create(
            job=job, task="worker", index=index, attempt=1, version=1, slot=index, address="", phase="running",
            created_at=began, started_at=began,
        )  # fmt: skip
        for age in (5, 15):
            at = now - timedelta(seconds=age)
            Sample.objects.create(pod=pod, at=at, cpu_ms=age, memory_bytes=7, span_seconds=10, gpu_thousandths=910)
    return job


def test_figures_and_what_they_call_for(alice: Any, running: Job) -> None:
    (found,) = alice.get(f"{JOBS}/{running.uid}/autoscaling").json()
    sentence = "Its GPUs are 91% busy. The target is 70%. It grows to 3 replicas."
    assert found == {
        "task": "worker", "replicas": 2, "min_replicas": 1, "max_replicas": 4, "gpu_utilization_target": 70,
        "gpu_utilization": 91.0, "scaling_state": "growing", "desired_replicas": 3, "sentence": sentence,
    }  # fmt: skip
    Sample.objects.all().delete()
    (found,) = alice.get(f"{JOBS}/{running.uid}/autoscaling").json()
    assert (found["gpu_utilization"], found["scaling_state"], found["desired_replicas"]) == (None, "no_figures", 2)
    assert "No utilization was measured in the last minute" in found["sentence"]


def test_job_keeps_the_target_in_its_spec_and_copy(alice: Any, running: Job) -> None:
    assert alice.get(f"{JOBS}/{running.uid}").json()["spec"]["tasks"][0]["autoscaling"] == RULE
    assert alice.get(f"{JOBS}/{running.uid}/copy").json()["spec"]["tasks"][0]["autoscaling"] == RULE
    beyond = alice.patch(f"{JOBS}/{running.uid}/scale", {"tasks": {"worker": {"replicas": 5}}}, format="json")
    assert (beyond.status_code, beyond.json()["errors"][0]["path"]) == (400, "tasks.worker.autoscaling.max_replicas")


def test_target_of_a_running_job_is_changed(alice: Any, bob: Any, running: Job) -> None:
    def change(rule: dict[str, Any] | None, by: Any = alice, query: str = "") -> Any:
        return by.patch(
            f"{JOBS}/{running.uid}/scale{query}", {"tasks": {"worker": {"autoscaling": rule}}}, format="json"
        )

    answer = change({"gpu_utilization": 90, "max_replicas": 3}).json()
    assert answer["job"]["spec"]["tasks"][0]["autoscaling"] == {"max_replicas": 3, "gpu_utilization": 90}
    (found,) = alice.get(f"{JOBS}/{running.uid}/autoscaling").json()
    assert (found["gpu_utilization_target"], found["scaling_state"], found["desired_replicas"]) == (90, "on_target", 2)
    sizes = alice.get(f"{JOBS}/{running.uid}/scale").json()["tasks"]["worker"]
    assert sizes["autoscaling"] == {"max_replicas": 3, "gpu_utilization": 90, "stabilization_seconds": 300}
    assert change(sizes["autoscaling"]).json()["job"]["revision"] == 2, "the same again"

    assert change({"gpu_utilization": 80}, bob).status_code == 403
    assert change({"gpu_utilization": 80}, query="?revision=1").status_code == 409
    refused = change({"gpu_utilization": 0}).json()["errors"][0]
    assert refused["path"] == "tasks.worker.autoscaling.gpu_utilization"
    assert change({"max_replicas": 1}).json()["errors"][0]["path"] == "tasks.worker.autoscaling.max_replicas"

    assert "autoscaling" not in change(None).json()["job"]["spec"]["tasks"][0]
    assert alice.get(f"{JOBS}/{running.uid}/autoscaling").json() == []
    assert change({"gpu_utilization": 80}).status_code == 400, "it needs a maximum"
    assert change(RULE).status_code == 200
    events = alice.get(f"{JOBS}/{running.uid}/events").json()["events"]
    assert [one["sentence"] for one in events if one["kind"] == "JobChanged"][:2] == [
        "Changed: maximum replicas of worker from 4 to 3; target GPU utilization of worker from 70% to 90%.",
        "Changed: maximum replicas of worker from 3 to off; target GPU utilization of worker from 90% to off; "
        "seconds until worker shrinks from 300 to off.",
    ]


def test_job_without_autoscaling_has_no_figures(alice: Any, a_job: dict[str, Any]) -> None:
    uid = alice.post(JOBS, a_job, format="json").json()["job"]["uid"]
    assert alice.get(f"{JOBS}/{uid}/autoscaling").json() == []
