"""Tasks that grow and shrink with the measured utilization of their cards, with the real engine and backends."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pynvml
import pytest
from tests.controller.conftest import SIZE, World, operated
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.metrics_server import metrics_server
from tests.support import auditor

from hekla.apps.clusters import leases
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.job_history import history
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services import ScalingStep
from hekla.apps.quotas.models import Quota
from hekla.apps.usage import autoscaling
from hekla.apps.usage.models import Sample
from hekla.backends.kubernetes import metrics_poller
from hekla.backends.local import gpus
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.controller.lease_context import identity
from hekla.controller.observations import key_of
from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock

GPU = "nvidia.com/gpu"


@pytest.fixture
def world(transactional_db: None, settings: Any, tmp_path: Any) -> Iterator[World]:
    """Nodes with six GPUs in total."""
    size = {"cpu": "8", "memory": "16Gi", GPU: "3"}
    nodes = [{"name": "gpus", "count": 2, "allocatable": size}]
    with operated(nodes, settings, tmp_path) as made:
        yield made


@pytest.fixture(autouse=True)
def short_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute takes half a second, so that the first one of a pod is soon over."""
    monkeypatch.setattr(autoscaling, "MINUTE_SECONDS", 0.5)


def submit(world: World, load: float, *, replicas: int = 2, command: Sequence[str] = ("train",)) -> Job:
    rule = {"max_replicas": 4, "gpu_utilization": 70, "stabilization_seconds": 0}
    env = {"HEKLA_SIM_SECONDS": "1000000", "HEKLA_SIM_GPU_LOAD": str(load)}
    task = {
        "name": "worker", "replicas": replicas, "min_available": 1, "command": [*command], "env": env,
        "image": "registry/tool",
        "resources": {"cpu": "1", GPU: "1"}, "autoscaling": rule, "grace_seconds": 0,
    }  # fmt: skip
    spec = JobSpec.parse({"name": "elastic", "tasks": [task]})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def running(job: Job) -> list[int]:
    found = Pod.objects.filter(job=job, phase="running", stopping=False)
    return list(found.order_by("index").values_list("index", flat=True))


def let_measure(world: World, done: Callable[[], bool]) -> None:
    """Reconciles, and measures and scales each time, until the condition holds."""
    controller = controllers.get(world.cluster.pk)

    def is_done() -> bool:
        controller.autoscaling.done_at = controller._measuring.done_at = None
        return done()

    world.reconcile_until(is_done)


def sentences(job: Job) -> list[str]:
    found = LoggedEvent.objects.filter(subject=f"job:{job.uid}", kind="JobAutoscaled").order_by("id")
    return [line.sentence for line in history.lines(list(found))]


def found_for(job: Job, now: datetime | None = None) -> tuple[str, float | None, int]:
    (found,) = autoscaling.of_job(Job.objects.get(pk=job.pk), now=now or clock.now())
    best = found.recommendation
    return best.state, best.utilization, best.replicas


def test_task_grows_while_its_gpus_are_busier_than_the_target(world: World) -> None:
    job = submit(world, load=1.82)
    let_measure(world, lambda: running(job) == [0, 1, 2])
    assert sentences(job) == ["worker grew from 2 to 3 replicas: its GPUs were 91% busy, target 70%."]
    job.refresh_from_db()
    assert (job.replicas, job.revision, job.phase, job.retry_count) == (3, 2, "running", 0)
    auditor.audit()


def test_task_shrinks_to_its_minimum_while_its_gpus_are_idle(world: World) -> None:
    job = submit(world, load=0.2, replicas=3)
    let_measure(world, lambda: running(job) == [0])
    assert sentences(job)[0] == "worker shrank from 3 to 2 replicas: its GPUs were 7% busy, target 70%."
    assert {pod.stop_reason for pod in job.pods.filter(index__gt=0)} == {"ScaledDown"}
    auditor.audit()


def test_task_without_figures_keeps_its_size(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job = submit(world, load=4)
    let_measure(world, lambda: running(job) == [0, 1] and Sample.objects.filter(pod__job=job).exists())
    monkeypatch.setattr(autoscaling, "MINUTE_SECONDS", 60)
    assert found_for(job) == ("no_figures", None, 2), "the first minute does not count"
    assert found_for(job, clock.now() + timedelta(hours=1)) == ("no_figures", None, 2)


def test_quota_and_limit_of_the_queue_bound_the_growth(world: World) -> None:
    world.queue.capability = {GPU: "3"}
    world.queue.save()
    job = submit(world, load=4)
    let_measure(world, lambda: running(job) == [0, 1, 2])
    let_measure(world, lambda: found_for(job) == ("at_limit", 100.0, 3))
    Quota.objects.create(tenant=world.tenant, of=Quota.Of.TENANT, resources={GPU: "4"})
    world.queue.capability = {GPU: "5"}
    world.queue.save()
    assert found_for(job) == ("growing", 100.0, 4)


def test_stale_step_is_dropped(world: World) -> None:
    job = submit(world, load=1.4)
    world.reconcile_until(lambda: running(job) == [0, 1])
    epoch = leases.take(world.cluster, identity(), now=clock.now())
    assert epoch is not None
    step = ScalingStep("worker", 3, 91.0, 70, revision=2)
    assert not services.autoscale(world.cluster.pk, epoch, job.pk, step, now=clock.now())
    assert services.autoscale(world.cluster.pk, epoch, job.pk, replace(step, revision=1), now=clock.now())


def test_local_pods_grow_by_the_figures_of_their_gpus(
    transactional_db: None, settings: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real processes, and a driver that reports three GPUs, and nothing about processes."""
    nothing = pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    answers: dict[str, Any] = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 3,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetUUID": lambda gpu: f"GPU-{gpu}",
        "nvmlDeviceGetMinorNumber": lambda gpu: 50 + gpu,
        "nvmlDeviceGetName": lambda _gpu: "NVIDIA H100",
        "nvmlDeviceGetMemoryInfo": lambda _gpu, **_more: SimpleNamespace(total=2**33, reserved=0, used=2**30),
        "nvmlDeviceGetComputeRunningProcesses": lambda _gpu: [],
        "nvmlDeviceGetMigMode": Mock(side_effect=nothing),
        "nvmlDeviceGetProcessUtilization": Mock(side_effect=nothing),
        "nvmlDeviceGetUtilizationRates": lambda _gpu: SimpleNamespace(gpu=92),
    }
    for name, answer in answers.items():
        monkeypatch.setattr(pynvml, name, answer)
    monkeypatch.setattr(gpus, "_library", gpus._Library())
    settings.HEKLA_HOME = tmp_path
    controllers.reset()
    here = World.found("local", {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"}})
    job = submit(here, load=0, command=["sleep", "60"])
    let_measure(here, lambda: running(job) == [0, 1, 2])
    assert sentences(job) == ["worker grew from 2 to 3 replicas: its GPUs were 92% busy, target 70%."]
    assert {card["id"] for pod in job.pods.all() for card in pod.cards} == {"GPU-0", "GPU-1", "GPU-2"}
    services.command(job, LifecycleAction.ABORT_JOB, user=here.alice, now=clock.now())
    here.reconcile_until(lambda: not running(job))
    backend_of(here.cluster).close()
    controllers.reset()


@pytest.mark.thorough
def test_pods_of_a_cluster_grow_by_the_figures_of_prometheus(
    transactional_db: None,
    settings: Any,
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
    small_cluster: ControlPlane,
    granted_namespace: str,
) -> None:
    """A real API server, and in place of Prometheus a server of the test, which knows the running pods."""
    monkeypatch.setattr(metrics_poller, "_EVERY_SECONDS", 0.1)
    settings.HEKLA_HOME = tmp_path
    controllers.reset()
    labels = {"hekla.dev/test": granted_namespace}
    machines = small_cluster.add_nodes(1, allocatable={**SIZE, GPU: "4"}, labels=labels)
    (tmp_path / "kubeconfigs").mkdir()
    (tmp_path / "kubeconfigs" / "test").write_text(json.dumps(small_cluster.kubeconfig(small_cluster.user_token)))
    with metrics_server() as server:
        place = {"kubeconfig": "test", "namespace": granted_namespace, "node_labels": labels}
        there = World.found("kubernetes", {**place, "prometheus": {"address": server.url}})
        job = submit(there, load=0)

        def done() -> bool:
            own = [f"{granted_namespace}/{key_of(pod).name}" for pod in job.pods.select_related("job__tenant")]
            server.prometheus = {
                "container_cpu_usage_seconds_total": dict.fromkeys(own, 5),
                "container_memory_working_set_bytes": dict.fromkeys(own, 2**20),
                "DCGM_FI_DEV_GPU_UTIL": dict.fromkeys(own, 0.93),
            }
            return running(job) == [0, 1, 2]

        let_measure(there, done)
        assert sentences(job) == ["worker grew from 2 to 3 replicas: its GPUs were 93% busy, target 70%."]
        backend_of(there.cluster).close()
    controllers.reset()
    small_cluster.remove_nodes(machines)
