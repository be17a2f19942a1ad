"""Spark's own client with Volcano's properties: its PodGroup and pods, placed by Hekla on a real API server.

spark-submit creates a PodGroup from `podGroupTemplateFile` and the driver; the driver creates the executors. All pods
name the group in an annotation and the scheduler in their spec. Here the test takes the part of Spark.
"""

from dataclasses import dataclass
from typing import Any

import pytest
from tests.controller.conftest import World
from tests.controller.fleet import ENDS_AT
from tests.controller.test_external_pods import (  # noqa: F401 - fixtures
    create_pod,
    create_pod_group,
    external_namespace,
    get_pod,
    long_patience,
    pod_group_phase,
    pod_groups,
    shared,
)
from tests.kubernetes.control_plane import ControlPlane, RequestRefused

from hekla.apps.jobs.models import Job, Pod
from hekla.controller import audit
from hekla.domain.phases import JobPhase, PodPhase
from hekla.lib import clock

Object = dict[str, Any]
pytestmark = pytest.mark.kubernetes
APPLICATIONS = 4


@dataclass(frozen=True)
class Spark:
    """One application, as Spark 3.5 creates its objects."""

    plane: ControlPlane
    namespace: str
    number: int

    @property
    def app(self) -> str:
        return f"spark-{self.number:032x}"

    @property
    def driver(self) -> str:
        return f"pi-{self.number}-driver"

    def submit(self, **group: Any) -> None:
        """The PodGroup of the template, and the driver."""
        create_pod_group(self.plane, self.namespace, f"{self.app}-podgroup", 1, **group)
        labels = {"spark-role": "driver", "spark-app-name": f"pi-{self.number}", "spark-version": "3.5.1"}
        create_pod(self.plane, self.namespace, self._pod(self.driver, "spark-kubernetes-driver", labels))

    def follow(self) -> None:
        """What the driver does: create two executors when it runs, and end after them."""
        if get_pod(self.plane, self.namespace, self.driver)["status"].get("phase") != "Running":
            return
        phases = [self._phase(number) for number in (1, 2)]
        if not any(phases):
            for number in (1, 2):
                create_pod(self.plane, self.namespace, self._executor(number))
        elif phases == ["Succeeded", "Succeeded"]:
            change = {"metadata": {"annotations": {ENDS_AT: clock.now().isoformat()}}}
            path = f"/api/v1/namespaces/{self.namespace}/pods/{self.driver}"
            self.plane.request("PATCH", path, change, content_type="application/merge-patch+json")

    def _phase(self, number: int) -> str:
        try:
            found = get_pod(self.plane, self.namespace, f"pi-{self.number}-exec-{number}")
        except RequestRefused:
            return ""
        return str(found["status"].get("phase"))

    def _executor(self, number: int) -> Object:
        uid = get_pod(self.plane, self.namespace, self.driver)["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": self.driver, "uid": uid, "controller": True}
        labels = {"spark-role": "executor", "spark-exec-id": str(number), "spark-exec-resourceprofile-id": "0"}
        body = self._pod(f"pi-{self.number}-exec-{number}", "spark-kubernetes-executor", labels)
        body["metadata"]["ownerReferences"] = [owner]
        body["metadata"]["annotations"]["hekla.dev/test-seconds"] = "1s"
        return body

    def _pod(self, name: str, container: str, labels: Object) -> Object:
        one = {"name": container, "image": "apache/spark:3.5.1", "resources": {"requests": {"cpu": "1"}}}
        return {
            "metadata": {
                "name": name,
                "labels": {"spark-app-selector": self.app, **labels},
                "annotations": {"scheduling.k8s.io/group-name": f"{self.app}-podgroup"},
            },
            "spec": {"schedulerName": "hekla", "restartPolicy": "Never", "containers": [one]},
        }


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


def test_applications_of_spark_submit_all_end(shared: World, applications: list[Spark]) -> None:  # noqa: F811
    """Four CPUs; an application needs three. Without minResources four drivers would take all of them."""
    for one in applications:
        one.submit(queue="default", minResources={"cpu": "3"})
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
        assert (replicas, job.spec["min_resources"]) == ({"driver": 1, "executor": 2}, {"cpu": "3"})
    assert audit.findings() == []


def test_drivers_of_spark_submit_deadlock_without_minimum_resources(shared: World, applications: list[Spark]) -> None:  # noqa: F811
    for one in applications:
        one.submit()

    def is_stuck() -> bool:
        for one in applications:
            one.follow()
        return drivers() == APPLICATIONS and Pod.objects.filter(task="executor").count() == 2 * APPLICATIONS

    shared.reconcile_until(is_stuck)
    shared.reconcile_until(lambda: all(job.waiting for job in Job.objects.all()))
    assert not Pod.objects.filter(task="executor").exclude(node="").exists()
