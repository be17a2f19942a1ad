"""CPUs that jobs have for themselves on this machine: from the configuration of the cluster to processes and pages."""

import os

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient
from tests.controller.conftest import World
from tests.controller.test_cluster_controller import phase
from tests.simulation.conftest import spec

from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.controller.observations import key_of
from hekla.domain.cpu_sets import parse_cpus
from hekla.domain.policies import LifecycleAction
from hekla.domain.scheduling_inputs import Input
from hekla.lib import clock
from hekla.scheduling import policies, supplies

OWN = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
pytestmark = [
    pytest.mark.parametrize("world", ["local"], indirect=True),
    pytest.mark.skipif(len(OWN) < 2, reason="this machine has one CPU"),
]
POLICY = """\
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: numa-aware}]
"""
PRINT = "import os; print(*sorted(os.sched_getaffinity(0)), flush=True)"


def submit(world: World, name: str, code: str, cpu: str, **fields) -> Job:
    wanted = spec(name, cpu=cpu, command=["python", "-c", code], resources={"memory": "64Mi"}, **fields)
    return services.submit(spec=wanted, tenant=world.tenant, user=world.alice, now=clock.now())


def printed(world: World, job: Job) -> list[str]:
    return backend_of(world.cluster).logs(key_of(Pod.objects.get(job=job)), offset=0, limit=1000).data.decode().split()


def free_cpus(world: World) -> int:
    """As the engine reads them, of the nodes of this moment and not of up to ten seconds ago."""
    controllers.reset()
    controllers.reconcile(world.cluster)
    return sum(cell["free"] for cell in Node.objects.get().numa["cells"])


def test_job_has_its_cpu_alone_until_it_ends(world: World) -> None:
    reserved = ",".join(map(str, OWN[:-1]))
    config = {"cpu_policy": "static", "topology_policy": "single-numa-node", "reserved_cpus": reserved}
    clusters.change(world.cluster, {"config": config}, actor=PLATFORM, now=clock.now())
    clusters.set_policy(world.cluster, text=POLICY, note="", by=world.alice, actor=PLATFORM, now=clock.now())
    assert free_cpus(world) == 1
    assert Input.NUMA_CELLS in supplies.supplied(world.cluster, policies.in_force(world.cluster))

    code = f"{PRINT}; import time; time.sleep(1000)"
    alone = submit(world, "alone", code, "1", topology_policy="single-numa-node")
    world.reconcile_until(lambda: phase(alone) == "running" and bool(printed(world, alone)))
    assert printed(world, alone) == [str(OWN[-1])]
    assert free_cpus(world) == 0
    others = submit(world, "others", PRINT, "0")
    world.reconcile_until(lambda: phase(others) == "completed")
    assert printed(world, others) == [str(cpu) for cpu in OWN[:-1]]
    check_pages(world, alone, str(OWN[-1]))

    services.command(alone, LifecycleAction.TERMINATE_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: phase(alone) == "terminated")
    assert free_cpus(world) == 1
    assert [parse_cpus(pod.cpus) for pod in Pod.objects.order_by("pk")] == [{OWN[-1]}, set()]


def check_pages(world: World, job: Job, cpus: str) -> None:
    client, pod = Client(), Pod.objects.get(job=job)
    client.force_login(world.alice)
    assert (
        f"Own CPUs {cpus}</span>"
        in client.get(reverse("jobs:detail", args=[job.uid]), {"tab": "pods"}).content.decode()
    )
    assert f"Own CPUs {cpus}</span>" in client.get(reverse("jobs:pod", args=[job.uid, pod.pk])).content.decode()
    assert "0 of 1 CPUs free" in client.get(reverse("clusters:node", args=[Node.objects.get().pk])).content.decode()
    rest = APIClient()
    rest.force_authenticate(world.alice)
    [found] = rest.get(reverse("api:v1:job", args=[job.uid])).json()["pods"]
    assert found["cpus"] == cpus
