"""Limits and guarantees of queues: unknown resources, over-commitment, and what a change takes."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.apps.test_queue_pages import set_running
from tests.apps.test_queue_preview import CAPACITY_POLICY, form

from hekla.apps.accounts.models import User
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import NodeFacts
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.queues import services as queues
from hekla.apps.queues.models import Queue
from hekla.domain.errors import Invalid
from hekla.lib import clock
from hekla.simulation import queue_shares
from hekla.simulation.snapshot_cache import looking_at

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
SIZE = {"cpu": "16", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "32"}
GPU_TASK = {"name": "main", "command": ["true"], "resources": {"cpu": "1", "nvidia.com/gpu": "1"}}


@pytest.fixture
def gpus(people: People) -> People:
    """One node with 32 GPUs, and a second queue."""
    clusters.observe_nodes(people.cluster, [NodeFacts("n1", SIZE, {})], now=clock.now())
    queues.create(cluster=people.cluster, name="other", actor=PLATFORM, now=clock.now())
    return people


def change(people: People, allow: bool = False, **values: Any) -> None:
    queues.change(people.queue, values, by=people.ada, actor=PLATFORM, now=clock.now(), allow_unknown_resources=allow)


@pytest.mark.parametrize("field", ["capability", "guarantee", "deserved"])
def test_unknown_resources_are_refused(gpus: People, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        change(gpus, **{field: {"gpu": "8"}})
    (problem,) = refused.value.problems
    assert problem.path == field
    assert "Unknown resource “gpu”. Cluster sim has: cpu, memory, nvidia.com/gpu, pods." in problem.message
    gpus.queue.refresh_from_db()
    assert getattr(gpus.queue, field) == {}
    change(gpus, **{field: {"nvidia.com/gpu": "8", "pods": "5"}})


def test_new_queues_refuse_them_too(gpus: People) -> None:
    now, values = clock.now(), {"capability": {"gpu": "8"}}
    with pytest.raises(Invalid):
        queues.create(cluster=gpus.cluster, name="fresh", values=values, actor=PLATFORM, now=now)
    queues.create(
        cluster=gpus.cluster, name="fresh", values=values, actor=PLATFORM, now=now, allow_unknown_resources=True
    )


def test_confirmed_resources_are_known_from_then_on(gpus: People) -> None:
    change(gpus, allow=True, capability={"example.com/fpga": "8"})
    change(gpus, weight=3)
    change(gpus, capability={"example.com/fpga": "4"})
    with pytest.raises(Invalid):
        change(gpus, capability={"example.com/fpg": "4"})


def test_resources_of_unfinished_jobs_are_known(gpus: People) -> None:
    gpus.submit(tasks=[GPU_TASK])
    clusters.observe_nodes(gpus.cluster, [NodeFacts("n1", {"cpu": "4", "pods": "9"}, {})], now=clock.now())
    change(gpus, capability={"nvidia.com/gpu": "8"})
    with pytest.raises(Invalid):
        change(gpus, capability={"main": "8"})


def test_the_form_refuses_unless_confirmed(gpus: People, as_: As) -> None:
    ada, address = as_(gpus.ada), reverse("queues:edit", args=["default"])
    wrong = form(capability="gpu=8", deserved="")
    page = ada.post(reverse("queues:preview", args=["default"]), wrong).content.decode()
    assert "Unknown resource “gpu”" in page.partition('<div id="id_capability_error"')[2].partition("</div>")[0]
    assert "Unknown resource “gpu”" in ada.post(address, wrong).content.decode()
    assert Queue.objects.get(name="default").capability == {}
    assert ada.post(address, wrong | {"allow_unknown_resources": "on"}).status_code == 302
    assert Queue.objects.get(name="default").capability == {"gpu": "8"}


def preview(people: People, as_: As, **fields: str) -> str:
    page = as_(people.ada).post(reverse("queues:preview", args=["default"]), form(deserved="", **fields))
    return " ".join(page.content.decode().split())


def test_preview_warns_of_guarantees_beyond_the_cluster(gpus: People, as_: As) -> None:
    page = preview(gpus, as_, guarantee="nvidia.com/gpu=40")
    assert "The queues of this cluster are guaranteed 40 GPU in total. The cluster has 32 GPU." in page
    assert "Queue other can use at most 0 GPU, instead of 32 GPU." in page
    assert "guaranteed" not in preview(gpus, as_, guarantee="nvidia.com/gpu=32").partition("</table>")[2]


def test_saving_over_committed_guarantees_warns(gpus: People, as_: As) -> None:
    address = reverse("queues:edit", args=["default"])
    page = as_(gpus.ada).post(address, form(guarantee="nvidia.com/gpu=40", deserved=""), follow=True).content.decode()
    assert "guaranteed 40 GPU in total" in page


def test_preview_says_what_a_limit_takes(gpus: People, as_: As) -> None:
    two = GPU_TASK | {"resources": {"nvidia.com/gpu": "2"}}
    gpus.submit("needs-two", tasks=[two])
    set_running(gpus.submit("holds", tasks=[two | {"replicas": 2}]), pods=2)
    page = preview(gpus, as_, capability="nvidia.com/gpu=1")
    assert "Queue default can use at most 1 GPU, instead of 32 GPU." in page
    assert "Queue default uses 4 GPU. Its pods continue, and new ones wait until it uses less." in page
    assert "Job needs-two in queue default could never start." in page
    harmless = preview(gpus, as_, capability="nvidia.com/gpu=32")
    assert "can use at most" not in harmless
    assert "never start" not in harmless


@pytest.mark.parametrize("policy", ["", CAPACITY_POLICY], ids=["proportion", "capacity"])
def test_a_limit_of_zero_takes_the_resource(gpus: People, as_: As, policy: str) -> None:
    if policy:
        clusters.set_policy(gpus.cluster, policy, note="", by=gpus.ada, actor=PLATFORM, now=clock.now())
    gpus.submit("needs-one", tasks=[GPU_TASK])
    page = preview(gpus, as_, capability="nvidia.com/gpu=0")
    assert "Queue default can use at most 0 GPU, instead of 32 GPU." in page
    assert "Job needs-one in queue default could never start." in page
    change(gpus, capability={"nvidia.com/gpu": "0"})
    with pytest.raises(Invalid, match="The capacity of queue default is 0"):
        gpus.submit("refused", tasks=[GPU_TASK])
    assert gpus.submit("without").pk


def test_zero_cpu_is_no_limit_as_in_volcano(gpus: People, as_: As) -> None:
    assert "can use at most" not in preview(gpus, as_, capability="cpu=0, memory=0")


def test_previewed_effects_come_true(gpus: People) -> None:
    gpus.submit("needs-two", tasks=[GPU_TASK | {"resources": {"nvidia.com/gpu": "2"}}])
    gpus.queue.capability = {"nvidia.com/gpu": "1"}
    foretold = queue_shares.forecast(gpus.queue)
    assert [job.name for job in foretold.blocked] == ["needs-two"]
    change(gpus, capability={"nvidia.com/gpu": "1"})
    with looking_at(gpus.cluster) as outlook:
        simulator = outlook.simulator()
        (uid,) = simulator.waiting()
        assert [reason.code for reason in simulator.decided.reasons[uid] if not reason.ever] == ["queue_is_full"]
    now = queue_shares.forecast(gpus.queue)
    assert (now.before["default"].limit, now.blocked) == (foretold.after["default"].limit, ())
