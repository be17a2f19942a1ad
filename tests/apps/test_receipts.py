"""Receipts of evictions: both jobs see pods, rule, shares and lost work, and nothing of another tenant."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import NodeFacts
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import CONTROLLER, unit_of_work
from hekla.apps.job_history import receipts
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services.transitions import evict
from hekla.domain import events
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
GPUS = {"cpu": "1", "nvidia.com/gpu": "2"}
SHARES = events.EvictionShares(
    plugin="proportion",
    of="queue",
    giver=events.ShareChange(before=2, after=1),
    taker=events.ShareChange(before=0, after=1),
)


def running_pod(job: Job, index: int, *, ran: float, attempt: int = 1, phase: str = "running") -> Pod:
    began = clock.now() - timedelta(seconds=ran)
    return Pod.objects.create(
        job=job, task="main", index=index, attempt=attempt, version=1, slot=100 * job.pk + 10 * index + attempt,
        address="127.0.0.1", node="n1", phase=phase, created_at=began, bound_at=began, started_at=began,
    )  # fmt: skip


def make_room(giver: Job, taker: Job | None, *pods: Pod, action: str = "reclaim") -> None:
    now = clock.now()
    with unit_of_work():
        for pod in pods:
            event = events.PodEvicted(
                task=pod.task, index=pod.index, attempt=pod.attempt, action=action, node=pod.node,
                for_job=str(taker.uid) if taker else "",
                for_name=taker.name if taker and taker.tenant_id == giver.tenant_id else "",
                plugins=("gang",), shares=(SHARES,),
            )  # fmt: skip
            evict(giver, pod, event, actor=CONTROLLER, now=now)


@pytest.fixture
def giver(people: People) -> Job:
    allocatable = {"cpu": "8", "nvidia.com/gpu": "8", "pods": "10"}
    clusters.observe_nodes(people.cluster, [NodeFacts("n2", allocatable, {})], now=clock.now())
    task = {"name": "main", "replicas": 3, "command": ["true"], "resources": GPUS}
    spec = JobSpec.parse({"name": "giver", "tasks": [task]})
    job = services.submit(spec=spec, tenant=people.lab, user=people.alice, now=clock.now())
    Job.objects.filter(pk=job.pk).update(phase="running")
    return Job.objects.get(pk=job.pk)


def test_both_jobs_have_the_same_receipt(people: People, giver: Job) -> None:
    taker = people.submit("taker")
    make_room(giver, taker, running_pod(giver, 0, ran=60), running_pod(giver, 1, ran=30))
    (receipt,), (gained,) = receipts.made_room_for(giver), receipts.gained(taker)
    assert receipt.sentence == "2 pods on n1 were evicted for job taker."
    assert gained.sentence == "2 pods of job giver on n1 were evicted for this job."
    assert receipt.rule == gained.rule == "Reclaim by another queue (reclaim, allowed by gang)"
    assert receipt.pods == gained.pods == ("main-0", "main-1")
    assert receipt.held == gained.held
    assert receipt.held.quantities() == {"cpu": "2", "nvidia.com/gpu": "4"}
    assert receipt.share_change.startswith(
        "Its queue used 200% of its deserved share and uses 100% now. The other queue went from 0%"
    )
    assert gained.share_change.startswith(
        "Its queue used 0% of its deserved share and uses 100% now. The other queue went from 200%"
    )


def test_lost_work_is_counted_from_the_start(people: People, giver: Job) -> None:
    make_room(giver, people.submit("taker"), running_pod(giver, 0, ran=60), running_pod(giver, 1, ran=30))
    (receipt,) = receipts.made_room_for(giver)
    assert receipt.lost_seconds == pytest.approx(60, abs=4)
    assert receipt.lost_gpu_seconds == pytest.approx(2 * 60 + 2 * 30, abs=16)
    assert re.match(r"Up to 1 min \d s of work since the start, 3 min", receipt.lost)


def test_receipt_shows_the_current_state(people: People, giver: Job) -> None:
    people.submit("before")
    Job.objects.filter(name="before").update(priority=9)
    make_room(giver, people.submit("taker"), running_pod(giver, 0, ran=60), running_pod(giver, 1, ran=30))
    found = receipts.made_room_for(giver)
    assert found[0].now == "2 of 2 are pending now."
    wait = "1 pending job of queue default had higher priority or came first."
    assert receipts.queue_position(giver, found) == wait
    by_order = {}
    for order in ("priority", "fifo", "fair", "sla"):
        giver.queue.job_order = order
        by_order[order] = receipts.queue_position(giver, found)
    came_first = "0 pending jobs of queue default came first."
    assert by_order == {"priority": wait, "fifo": came_first, "fair": "", "sla": ""}
    giver.queue.job_order = ""
    for index in (0, 1):
        running_pod(giver, index, ran=0, attempt=2)
    found = receipts.made_room_for(giver)
    assert found[0].now == "All of them are running again."
    assert receipts.queue_position(giver, found) == ""


def test_other_tenants_have_no_name(people: People, giver: Job) -> None:
    task = {"name": "secret-role", "command": ["true"], "resources": {"cpu": "1"}}
    spec = JobSpec.parse({"name": "secret", "tasks": [task]})
    other_job = services.submit(spec=spec, tenant=people.other, user=people.charlie, now=clock.now())
    make_room(giver, other_job, running_pod(giver, 0, ran=60))
    (receipt,), (gained,) = receipts.made_room_for(giver), receipts.gained(other_job)
    assert receipt.sentence == "1 pod on n1 was evicted for a job of another tenant."
    assert gained.sentence == "1 pod of another tenant on n1 was evicted for this job."
    assert (gained.pods, gained.other_uid, gained.lost, dict(gained.held)) == ((), "", "", {})
    assert receipt.other_uid == ""


def test_eviction_without_a_beneficiary(giver: Job) -> None:
    make_room(giver, None, running_pod(giver, 0, ran=1), action="shuffle")
    (receipt,) = receipts.made_room_for(giver)
    assert receipt.sentence == "1 pod was evicted from n1."
    assert receipt.rule.startswith("Rescheduling by the policy")


def test_receipts_on_pages_and_over_rest(people: People, as_: As, giver: Job) -> None:
    taker, client = people.submit("taker"), as_(people.alice)
    make_room(giver, taker, running_pod(giver, 0, ran=60))
    pages = [client.get(reverse("jobs:detail", args=[job.uid])).content.decode() for job in (giver, taker)]
    assert all('id="job-receipts-card"' in page for page in pages)
    assert "1 pod on n1 was evicted for job taker." in pages[0]
    assert pages[1].count("1 pod of job giver on n1 was evicted for this job.") == 2  # the card, and the history
    body = client.get(reverse("api:v1:job_receipts", args=[taker.uid])).json()
    assert (body["yielded"], body["gained"][0]["other"], body["gained"][0]["held"]["cpu"]) == ([], "giver", "1")
    giver_body = client.get(reverse("api:v1:job_receipts", args=[giver.uid])).json()
    assert giver_body["yielded"][0]["lost_gpu_seconds"] == pytest.approx(120, abs=4)


def test_eviction_notifies_the_beneficiary(people: People, giver: Job) -> None:
    taker = people.submit("taker")
    make_room(giver, taker, running_pod(giver, 0, ran=60))
    assert f"job:{taker.uid}" in LoggedEvent.objects.get(kind="PodEvicted").topics


def test_query_count_is_constant(
    people: People, giver: Job, django_assert_max_num_queries: Callable[[int], Any]
) -> None:
    taker = people.submit("taker")
    for number in range(60):
        make_room(giver, taker, running_pod(giver, number % 3, ran=5, attempt=number + 1))
    with django_assert_max_num_queries(4):
        assert len(receipts.made_room_for(giver)) == receipts.MOST
        assert len(receipts.gained(taker)) == receipts.MOST
