"""The deadlock of Spark: drivers fill a queue, and none of them gets executors. Minimum resources prevent it."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import yaml
from rest_framework.test import APIClient
from tests.controller.conftest import World

from hekla.apps.accounts import services as accounts
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase, PodPhase
from hekla.lib import clock

APPLICATIONS = 8
WITHOUT_END = {"HEKLA_SIM_SECONDS": "1000000"}


@pytest.fixture
def world(transactional_db: None, settings: Any, tmp_path: Any) -> Iterator[World]:
    """Sixteen CPUs on two nodes, and a small queue of four."""
    settings.HEKLA_HOME = tmp_path
    controllers.reset()
    nodes = [{"name": name, "allocatable": {"cpu": "8", "memory": "64Gi", "pods": "100"}} for name in ("a", "b")]
    world = World.found("simulated", {"nodes": nodes, "seed": 1, "speed": 50})
    queues.create(
        cluster=world.cluster, name="small", values={"capability": {"cpu": "4"}}, actor=PLATFORM, now=clock.now()
    )
    yield world
    backend_of(world.cluster).close()
    controllers.reset()


def submit(world: World, number: int, **more: Any) -> Job:
    """A driver that runs until its executors have ended, and asks for them when it runs."""
    driver = {"name": "driver", "resources": {"cpu": "1"}, "env": WITHOUT_END, "command": ["spark-submit"]}
    executors = {
        "name": "executor",
        "replicas": 2,
        "resources": {"cpu": "1"},
        "env": {"HEKLA_SIM_SECONDS": "5"},
        "command": ["executor"],
        "depends_on": {"tasks": ["driver"]},
        "policies": [{"events": ["TaskCompleted"], "action": "CompleteJob"}],
    }
    document = {"name": f"spark-{number}", "queue": "small", "min_available": 1, "tasks": [driver, executors], **more}
    return services.submit(spec=JobSpec.parse(document), tenant=world.tenant, user=world.alice, now=clock.now())


def running(task: str) -> int:
    return Pod.objects.filter(task=task, phase=PodPhase.RUNNING).count()


def test_drivers_without_minimum_resources_deadlock(world: World) -> None:
    for number in range(APPLICATIONS):
        submit(world, number)
    world.reconcile_until(lambda: running("driver") == 4)
    for _ in range(10):
        controllers.reconcile(world.cluster)
    assert (running("driver"), Pod.objects.filter(task="executor").exclude(node="").count()) == (4, 0)
    assert not Job.objects.filter(phase=JobPhase.COMPLETED).exists()


def test_minimum_resources_let_in_as_many_drivers_as_get_their_executors(world: World) -> None:
    most = 0
    for number in range(APPLICATIONS):
        submit(world, number, min_resources={"cpu": "3"})

    def all_over() -> bool:
        nonlocal most
        most = max(most, running("driver"))
        return Job.objects.filter(phase=JobPhase.COMPLETED).count() == APPLICATIONS

    world.reconcile_until(all_over)
    assert most == 1, "a second driver would take what the executors of the first need"


def application(number: int) -> dict[str, Any]:
    """A SparkApplication of three pods. Its driver has an end."""
    driver = {"cores": 1, "memory": "512m", "env": [{"name": "HEKLA_SIM_SECONDS", "value": "5"}]}
    executor = {
        "cores": 1,
        "memory": "512m",
        "instances": 2,
        "env": [{"name": "HEKLA_SIM_SECONDS", "value": "1000000"}],
    }
    spec = {
        "type": "Scala",
        "mode": "cluster",
        "image": "apache/spark:3.5.1",
        "mainApplicationFile": "local:///opt/spark/examples/jars/spark-examples.jar",
        "batchScheduler": "volcano",
        "batchSchedulerOptions": {"queue": "small"},
        "driver": driver,
        "executor": executor,
    }
    head = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication"}
    return {**head, "metadata": {"name": f"pi-{number}"}, "spec": spec}


def test_spark_applications_start_whole_and_all_end(world: World) -> None:
    token = accounts.create_token(world.alice, name="test", lifetime=timedelta(hours=1), now=clock.now())
    client = APIClient(HTTP_AUTHORIZATION=f"Bearer {token}")
    for number in range(APPLICATIONS):
        text = yaml.safe_dump(application(number))
        answer = client.post("/api/v1/jobs", text, content_type="application/yaml")
        assert answer.status_code == 201, answer.content
    lonely: set[int] = set()

    def all_over() -> bool:
        lonely.update(with_node("driver") - with_node("executor"))
        return Job.objects.filter(phase=JobPhase.COMPLETED).count() == APPLICATIONS

    world.reconcile_until(all_over)
    assert not lonely, "no driver holds a place without its executors"


def with_node(task: str) -> set[int]:
    """The jobs whose pods of this task have nodes."""
    return set(Pod.objects.filter(task=task).exclude(node="").values_list("job_id", flat=True))
