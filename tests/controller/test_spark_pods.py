"""Spark's own client with Volcano's properties: its PodGroup and pods, placed by Hekla on a real API server.

spark-submit creates a PodGroup from `podGroupTemplateFile` and the driver; the driver creates the executors. All pods
name the group in an annotation and the scheduler in their spec. Here the test takes the part of Spark, with the objects
that it created for the example of the help (`tests/spark/recording.py`). `test_spark_submit` runs Spark itself.
"""

import html
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.controller.conftest import World
from tests.controller.external_pods import (  # noqa: F401 - fixtures
    condition,
    create_pod,
    create_pod_group,
    external_namespace,
    get_pod,
    long_patience,
    pod_groups,
    shared,
)
from tests.controller.fleet import ENDS_AT
from tests.kubernetes.control_plane import ControlPlane, RequestRefused
from tests.spark import recording

from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.controller import audit
from hekla.domain.phases import JobPhase, PodPhase
from hekla.lib import clock

Object = dict[str, Any]
pytestmark = pytest.mark.kubernetes
APPLICATIONS = 4
GROUP_NAME = "scheduling.k8s.io/group-name"


@dataclass(frozen=True)
class Spark:
    """One application, as the real Spark creates its objects. `has_group`: with Volcano's feature step."""

    plane: ControlPlane
    namespace: str
    number: int
    has_group: bool = True

    def submit(self, **changes: Any) -> None:
        """The PodGroup of the template with these changes, and the driver."""
        driver, *_executors, group = self._objects
        if self.has_group:
            spec = {name: value for name, value in {**group["spec"], **changes}.items() if value is not None}
            create_pod_group(self.plane, self.namespace, group["metadata"]["name"], spec.pop("minMember"), **spec)
        create_pod(self.plane, self.namespace, self._adapted(driver))

    def follow(self) -> None:
        """What the driver does: create two executors when it runs, delete them when both run, and end."""
        if self._phase(self.driver) != "Running":
            return
        phases = [self._phase(name) for name in self.executors]
        if not any(phases):
            uid = get_pod(self.plane, self.namespace, self.driver)["metadata"]["uid"]
            _driver, *executors, _group = recording.objects(self.number, self.namespace, uid)
            for one in executors:
                create_pod(self.plane, self.namespace, self._adapted(one))
        elif phases == ["Running", "Running"]:
            for name in self.executors:
                self.plane.request("DELETE", f"{self._place}/{name}")  # with a grace period: they exit with 143
            self._end_driver()

    @property
    def driver(self) -> str:
        return str(self._objects[0]["metadata"]["name"])

    @property
    def executors(self) -> list[str]:
        return [one["metadata"]["name"] for one in self._objects[1:-1]]

    def _end_driver(self) -> None:
        change = {"metadata": {"annotations": {ENDS_AT: clock.now().isoformat()}}}
        content_type = "application/merge-patch+json"
        self.plane.request("PATCH", f"{self._place}/{self.driver}", change, content_type=content_type)

    def _phase(self, name: str) -> str:
        try:
            return str(get_pod(self.plane, self.namespace, name)["status"].get("phase"))
        except RequestRefused:
            return ""

    def _adapted(self, pod: Object) -> Object:
        """The pod without the service account, which the namespace lacks, and by choice without its group."""
        pod["spec"] |= {"serviceAccountName": "default", "serviceAccount": "default"}
        if not self.has_group:
            del pod["metadata"]["annotations"][GROUP_NAME]
        return pod

    @property
    def _place(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    @cached_property
    def _objects(self) -> list[Object]:
        return recording.objects(self.number, self.namespace)


@pytest.fixture
def applications(
    small_cluster: ControlPlane,
    external_namespace: str,  # noqa: F811
    pod_groups: None,  # noqa: F811
) -> list[Spark]:
    """Applications of two executors each, which are not submitted yet."""
    return [Spark(small_cluster, external_namespace, number) for number in range(APPLICATIONS)]


def drivers() -> int:
    return Pod.objects.filter(task="driver", phase=PodPhase.RUNNING).count()


def test_recording_is_of_the_example_in_the_help() -> None:
    found = recording.recorded()
    for page in ("submitting.md", "zh-hans/submitting.md"):
        assert (recording.files(page), recording.arguments(page)) == (found["files"], found["arguments"])


def test_applications_of_spark_submit_all_end(shared: World, applications: list[Spark]) -> None:  # noqa: F811
    """Four CPUs; an application needs three. Without minResources four drivers would take all of them."""
    for one in applications:
        one.submit()
    most = 0

    def all_over() -> bool:
        nonlocal most
        for one in applications:
            one.follow()
        most = max(most, drivers())
        return Job.objects.filter(phase=JobPhase.COMPLETED).count() == APPLICATIONS

    shared.reconcile_until(all_over)
    assert most == 1, "a second driver would take what the executors of the first need"
    for job in Job.objects.all():
        replicas = {task["name"]: task.get("replicas", 1) for task in job.spec["tasks"]}
        assert (replicas, job.spec["min_resources"]) == ({"driver": 1, "executor": 2}, {"cpu": "3", "memory": "5Gi"})
        assert {(pod.task, pod.phase) for pod in job.pods.all()} == {
            ("driver", PodPhase.SUCCEEDED),
            ("executor", PodPhase.LOST),  # by the driver, which is no failure
        }
        assert job.name.startswith("pi")
    assert audit.findings() == []


def test_drivers_of_spark_submit_deadlock_without_minimum_resources(shared: World, applications: list[Spark]) -> None:  # noqa: F811
    for one in applications:
        one.submit(minResources=None)

    def is_stuck() -> bool:
        for one in applications:
            one.follow()
        return drivers() == APPLICATIONS and Pod.objects.filter(task="executor").count() == 2 * APPLICATIONS

    shared.reconcile_until(is_stuck)
    shared.reconcile_until(lambda: all(job.waiting for job in Job.objects.all()))
    assert not Pod.objects.filter(task="executor").exclude(node="").exists()


def test_executor_waits_for_its_queue_with_a_reason(
    shared: World,  # noqa: F811
    applications: list[Spark],
    client: Client,
) -> None:
    """The queue has two CPUs, for the driver and one executor."""
    queues.create(
        cluster=shared.cluster, name="small", values={"capability": {"cpu": "2"}}, actor=PLATFORM, now=clock.now()
    )
    one = applications[0]
    one.submit(queue="small", minResources={"cpu": "2"})

    def waiting() -> list[str]:
        one.follow()
        return [name for name in one.executors if "queue" in _condition(one, name)]

    shared.reconcile_until(lambda: bool(waiting()) and Pod.objects.filter(phase=PodPhase.RUNNING).count() == 2)
    ((name,), job) = waiting(), Job.objects.get()
    assert (job.name, job.queue.name) == ("pi", "small")
    assert [pod.task for pod in job.pods.filter(phase=PodPhase.PENDING, node="")] == ["executor"]
    client.force_login(shared.alice, backend="django.contrib.auth.backends.ModelBackend")
    (reason,) = client.get(f"/api/v1/jobs/{job.uid}").json()["waiting"]
    assert reason["sentence"] == _condition(one, name)
    assert reason["sentence"] in html.unescape(client.get(reverse("jobs:detail", args=[job.uid])).content.decode())


def _condition(one: Spark, name: str) -> str:
    try:
        return condition(one.plane, one.namespace, name)
    except RequestRefused:
        return ""


def test_pods_of_an_application_without_a_pod_group_are_one_job(
    shared: World,  # noqa: F811
    small_cluster: ControlPlane,
    external_namespace: str,  # noqa: F811
) -> None:
    one = Spark(small_cluster, external_namespace, 1, has_group=False)
    one.submit()

    def is_over() -> bool:
        one.follow()
        return Job.objects.filter(phase=JobPhase.COMPLETED).exists()

    shared.reconcile_until(is_over)
    assert [(job.name, job.replicas) for job in Job.objects.all()] == [("pi", 3)]
