"""Settings of queues from REST to decisions: node groups, limits in them, hierarchy, and the order of jobs."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from rest_framework.test import APIClient
from tests.controller.conftest import World, operated

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.apps.tenancy import services as tenancy
from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock
from hekla.simulation.snapshot_cache import forget_all

GROUP = "volcano.sh/nodegroup-name"
POLICY = "actions: 'enqueue, allocate'\ntiers: [{plugins: [%s{name: gang}, {name: predicates}%s]}]\n"


@pytest.fixture
def grouped(transactional_db: None, settings, tmp_path) -> Iterator[World]:
    """Two nodes with four CPUs, in the node groups a and b."""
    size = {"cpu": "4", "memory": "8Gi", "pods": "20"}
    nodes = [{"name": f"node-{group}", "allocatable": size, "labels": {GROUP: group}} for group in "ab"]
    with operated(nodes, settings, tmp_path) as world:
        yield world


def edit(world: World, queue: str, **fields: Any) -> dict[str, Any]:
    client = APIClient()
    client.force_authenticate(world.alice)
    answer = client.patch(f"/api/v1/queues/{queue}", fields, format="json")
    assert answer.status_code == 200, answer.content
    return answer.json()


def use(world: World, first: str = "", last: str = "") -> None:
    """Activate a policy with these plugins before and after the others."""
    text = POLICY % (first and f"{first}, ", last and f", {last}")
    clusters.set_policy(world.cluster, text, note="", by=None, actor=PLATFORM, now=clock.now())


def submit(
    world: World, name: str, queue: str = "default", cpu: str = "1", user: User | None = None, **fields: Any
) -> Job:
    task = {"name": "main", "command": ["x"], "resources": {"cpu": cpu}, "env": {"HEKLA_SIM_SECONDS": "1e7"}}
    spec = JobSpec.parse({"name": name, "queue": queue, "tasks": [task], **fields})
    return services.submit(spec=spec, tenant=world.tenant, user=user or world.alice, now=clock.now())


def running() -> Counter[str]:
    """The number of running pods by job and node."""
    return Counter(f"{pod.job.name} {pod.node}" for pod in Pod.objects.filter(phase="running").select_related("job"))


def queue_named(world: World, name: str) -> None:
    queues.create(cluster=world.cluster, name=name, actor=PLATFORM, now=clock.now())


def test_pods_use_the_node_groups_of_their_queue(grouped: World) -> None:
    for name in ("needs", "prefers", "avoids"):
        queue_named(grouped, name)
    edit(grouped, "default", excluded_node_groups=["a"])
    edit(grouped, "needs", required_node_groups=["b"])
    edit(grouped, "prefers", required_node_groups=["a", "b"], preferred_node_groups=["b"])
    edit(grouped, "avoids", avoided_node_groups=["b"])
    use(grouped, last="{name: nodegroup}")
    for queue in ("default", "needs", "prefers", "avoids"):
        submit(grouped, queue, queue)
    grouped.reconcile_until(lambda: running().total() == 4)
    assert set(running()) == {"default node-b", "needs node-b", "prefers node-b", "avoids node-a"}


def test_change_of_node_groups_has_an_effect_at_the_next_reconciliation(grouped: World) -> None:
    edit(grouped, "default", required_node_groups=["c"])
    use(grouped, last="{name: nodegroup}")
    job = submit(grouped, "waits")
    grouped.reconcile_until(lambda: Job.objects.get(pk=job.pk).waiting != [])
    assert "node group affinity" in str(Job.objects.get(pk=job.pk).waiting)
    edit(grouped, "default", required_node_groups=["a"])
    grouped.reconcile_until(lambda: running() == {"waits node-a": 1})


def test_limit_in_a_node_group(grouped: World) -> None:
    edit(grouped, "default", required_node_groups=["a", "b"], node_group_limits={"a": {"cpu": "1"}})
    use(grouped, last="{name: nodegroup}")
    for number in range(4):
        submit(grouped, f"j{number}")
    grouped.reconcile_until(lambda: running().total() == 4)
    assert Counter(name.split()[1] for name in running().elements()) == {"node-a": 1, "node-b": 3}


def test_hierarchy_weights_divide_the_cluster(grouped: World) -> None:
    queue_named(grouped, "dev")
    edit(grouped, "default", hierarchy="root/research", hierarchy_weights="1/3")
    edit(grouped, "dev", hierarchy="root/dev", hierarchy_weights="1/1")
    use(grouped, first="{name: drf, enableHierarchy: true}")
    for number in range(8):
        for queue in ("dev", "default"):
            submit(grouped, f"{queue}-{number}", queue)
    grouped.reconcile_until(lambda: running().total() == 8)
    assert Counter(name.partition("-")[0] for name in running().elements()) == {"default": 6, "dev": 2}


@pytest.mark.parametrize(
    ("order", "first"), [("", "urgent"), ("fifo", "early"), ("priority", "urgent"), ("sla", "bound"), ("fair", "other")]
)
def test_queue_orders_its_jobs(grouped: World, order: str, first: str) -> None:
    """Both nodes are full of Alice's pods. When one is free, the job that is first gets it; pages list it first."""
    bob = accounts.create_user(username="bob", password=None, actor=PLATFORM, now=clock.now())
    tenancy.add_member(grouped.tenant, bob, "member", actor=PLATFORM, now=clock.now())
    old, _stays = (submit(grouped, f"old-{number}", cpu="4", priority=20) for number in range(2))
    grouped.reconcile_until(lambda: running().total() == 2)
    edit(grouped, "default", job_order=order)
    sla = {"volcano.sh/sla-waiting-time": "1h"}
    submit(grouped, "early", cpu="4")
    submit(grouped, "urgent", cpu="4", priority=9)
    submit(grouped, "bound", cpu="4", annotations=sla)
    submit(grouped, "other", cpu="4", user=bob)
    grouped.reconcile_until(lambda: Job.objects.filter(phase="pending").exclude(waiting=[]).count() == 4)
    assert in_line(grouped)[0] == first
    services.command(old, LifecycleAction.TERMINATE_JOB, user=grouped.alice, now=clock.now())
    grouped.reconcile_until(lambda: running().total() == 2 and not any(name.startswith("old-0") for name in running()))
    assert {name.split()[0] for name in running()} == {"old-1", first}


def in_line(world: World) -> list[str]:
    """The pending jobs as REST lists them."""
    client = APIClient()
    client.force_authenticate(world.alice)
    forget_all()
    return [one["name"] for one in client.get("/api/v1/queues/default/shares").json()["in_line"]]
