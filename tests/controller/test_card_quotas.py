"""Limits of a queue by card model: from REST and manifests to decisions, and to the reason on the page of the job."""

from collections import Counter
from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient
from tests.controller.conftest import World, operated
from tests.controller.test_queue_settings import edit, running, use

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.simulation.snapshot_cache import forget_all

MODELS = {"NVIDIA-A100": 2, "NVIDIA-H100": 1}
MANIFEST = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: vision, annotations: {volcano.sh/card.quota: '{"NVIDIA-H100": 1}'}}
"""


@pytest.fixture
def two_models(transactional_db: None, settings, tmp_path) -> Iterator[World]:
    """A node with four A100, whose cards are described, and one with four H100, which has the label of its driver."""
    size = {"cpu": "16", "memory": "8Gi", "pods": "20"}
    nodes = [
        {"name": "node-a", "allocatable": size, "cards": [{"model": "NVIDIA A100", "count": 4}]},
        {
            "name": "node-h",
            "allocatable": {**size, "nvidia.com/gpu": "4"},
            "labels": {"nvidia.com/gpu.product": "NVIDIA-H100"},
        },
    ]
    with operated(nodes, settings, tmp_path) as world:
        world.reconcile_until(lambda: world.cluster.nodes.count() == 2)
        yield world


def submit(
    world: World,
    name: str,
    queue: str = "default",
    pods: int = 1,
    models: str = "",
    *,
    priority: int = 0,
    least: int | None = None,
) -> Job:
    """A job with one GPU for each pod."""
    resources = {"cpu": "1", "nvidia.com/gpu": "1"}
    task = {"name": "main", "command": ["x"], "resources": resources, "env": {"HEKLA_SIM_SECONDS": "1e7"}}
    notes = {"volcano.sh/card.name": models} if models else {}
    fields = {"name": name, "queue": queue, "tasks": [task | {"replicas": pods}], "annotations": notes}
    fields |= {"priority": priority, "min_available": least or pods}
    spec = JobSpec.parse(fields)
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def on_nodes() -> Counter[str]:
    return Counter(Pod.objects.filter(phase="running").values_list("node", flat=True))


def test_queue_holds_its_cards_of_each_model_and_the_job_page_says_why(two_models: World) -> None:
    use(two_models, last="{name: capacity-card}")
    assert edit(two_models, "default", card_quota=MODELS)["warnings"] == []
    for number in range(5):
        submit(two_models, f"j{number}")
    two_models.reconcile_until(lambda: running().total() == 3 and Job.objects.exclude(waiting=[]).count() == 2)
    assert on_nodes() == {"node-a": 2, "node-h": 1}

    waiting = Job.objects.exclude(waiting=[]).first()
    client = Client()
    client.force_login(two_models.alice)
    page = client.get(reverse("jobs:detail", args=[waiting.uid])).content.decode()
    assert "limit of its queue on NVIDIA-A100 reached" in page
    assert "limit of its queue on NVIDIA-H100 reached" in page
    rest = APIClient()
    rest.force_authenticate(two_models.alice)
    forget_all()
    assert rest.get("/api/v1/queues/default/shares").json()["cards"] == [
        {"model": "NVIDIA-A100", "held": 2, "most": 2}, {"model": "NVIDIA-H100", "held": 1, "most": 1}
    ]  # fmt: skip
    page = client.get(reverse("queues:detail", args=["default"])).content.decode()
    assert "2 of 2 NVIDIA-A100" in page

    edit(two_models, "default", card_quota={"NVIDIA-A100": 4, "NVIDIA-H100": 1})
    two_models.reconcile_until(lambda: running().total() == 5)
    assert on_nodes() == {"node-a": 4, "node-h": 1}


def test_preemption_frees_the_limit_of_the_queue(two_models: World) -> None:
    """Cards are idle on the node; the limit of the queue is not."""
    policy = """\
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: capacity-card}]
"""
    clusters.set_policy(two_models.cluster, policy, note="", by=None, actor=PLATFORM, now=clock.now())
    edit(two_models, "default", card_quota={"NVIDIA-A100": 2})
    submit(two_models, "low", pods=2, least=1)
    two_models.reconcile_until(lambda: on_nodes() == {"node-a": 2})
    high = submit(two_models, "high", priority=9)
    two_models.reconcile_until(lambda: Pod.objects.filter(job=high, phase="running").exists())
    assert on_nodes() == {"node-a": 2}


def test_queue_of_a_manifest(two_models: World) -> None:
    use(two_models, last="{name: capacity-card}")
    rest = APIClient()
    rest.force_authenticate(two_models.alice)
    made = rest.post("/api/v1/queues", MANIFEST, content_type="application/yaml")
    assert (made.status_code, made.json()["card_quota"], made.json()["warnings"]) == (201, {"NVIDIA-H100": 1}, [])
    for number in range(2):
        submit(two_models, f"j{number}", "vision")
    two_models.reconcile_until(lambda: running().total() == 1 and Job.objects.exclude(waiting=[]).count() == 1)
    assert on_nodes() == {"node-h": 1}
    waiting = Job.objects.exclude(waiting=[]).get()
    assert "card quota too small: NVIDIA-A100" in str(waiting.waiting)


def test_limits_need_the_plugin(two_models: World) -> None:
    use(two_models)
    warnings = edit(two_models, "default", card_quota={"NVIDIA-A100": 0, "B200": 1})["warnings"]
    assert warnings == [
        "No node of cluster simulated has cards of the model B200. It has: NVIDIA-A100, NVIDIA-H100.",
        "Card limits: no effect, because the policy of cluster simulated does not use capacity-card.",
    ]
    submit(two_models, "gang", pods=8)
    two_models.reconcile_until(lambda: running().total() == 8)


def test_job_names_the_models_that_it_may_use(two_models: World) -> None:
    use(two_models, last="{name: capacity-card}")
    queues.create(cluster=two_models.cluster, name="other", actor=PLATFORM, now=clock.now())
    edit(two_models, "other", card_quota={"NVIDIA-A100": 4, "NVIDIA-H100": 1})
    submit(two_models, "only-h", models="NVIDIA-H100")
    for number in range(3):
        submit(two_models, f"either-{number}", "other", models="NVIDIA-H100|NVIDIA-A100")
    two_models.reconcile_until(lambda: running().total() == 4)
    assert on_nodes() == {"node-a": 2, "node-h": 2}
    assert running()["only-h node-h"] == 1
