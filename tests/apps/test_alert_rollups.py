"""Alerts on sums: the use of GPUs, wasted GPU hours, and waiting times of the last hours."""

from datetime import timedelta
from typing import Any

import pytest
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.alerts import measures
from hekla.apps.measures.levels import HOUR, floor
from hekla.apps.measures.models import JobSum, PartGpuTime
from hekla.apps.queues.models import Queue
from hekla.domain.alert_rules import AlertRuleSpec
from hekla.domain.gpu_time import GPU_HOUR
from hekla.domain.job_measures import bucket_of
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]


def read(
    name: str, people: People, *, window_minutes: int = 1440, tenant: Any = None, **change: Any
) -> dict[str, float]:
    document = {"name": "r", "measure": name, "threshold": 1, "cluster": "sim", "window_minutes": window_minutes}
    scope = measures.scope_of(AlertRuleSpec.parse({**document, **change}), tenant, now=clock.now())
    return {one.name: value for one, value in measures.find(name).read(scope).values.items()}


@pytest.fixture
def summed(people: People) -> Queue:
    """Two hours of GPU time: three idle hours and one useful one, two of which were a day ago."""
    queue, now = Queue.objects.get(name="default"), floor(clock.now(), HOUR)
    for hours, amounts in ((0, {"useful": 1, "idle": 1}), (20, {"idle": 2, "failed": 1}), (30, {"failed": 9})):
        for by, key in (("queue", queue.pk), ("tenant", people.lab.pk)):
            facts = {name: amount * GPU_HOUR for name, amount in amounts.items()}
            at = now - timedelta(hours=hours)
            PartGpuTime.objects.create(
                level=60, at=at, cluster_id=people.cluster.pk, model="A100", by=by, key=str(key), **facts
            )
    return queue


def test_use_and_waste_of_a_window(people: People, summed: Queue) -> None:
    assert read("gpu_use", people)["default"] == 25
    assert read("gpu_use", people, window_minutes=60)["default"] == 50
    assert read("wasted_gpu_hours_of_queue", people, queue="default", cluster="") == {"default": 4}
    assert read("wasted_gpu_hours_of_tenant", people, tenant=people.lab) == {people.lab.name: 4}


def test_queues_without_measured_time_have_no_use_and_no_waste(people: People) -> None:
    assert read("gpu_use", people) == {}
    assert set(read("wasted_gpu_hours_of_queue", people).values()) == {0.0}


def test_waiting_time_that_nine_of_ten_did_not_exceed(people: People) -> None:
    queue = Queue.objects.get(name="default")
    facts = {"level": 60, "at": floor(clock.now(), HOUR), "cluster_id": people.cluster.pk, "queue_id": queue.pk}
    facts |= {"tenant_id": people.lab.pk, "owner_id": people.alice.pk, "kind": "training", "size": "0", "model": ""}
    for minutes, count in ((1, 90), (60, 10)):
        part = str(bucket_of(minutes * 60_000))
        JobSum.objects.create(**facts, what="started", part=part, count=count, milliseconds=0)
    assert 1 <= read("waiting_p90", people)["default"] < 1.2
    JobSum.objects.filter(part=str(bucket_of(60 * 60_000))).update(count=20)
    assert 60 <= read("waiting_p90", people)["default"] < 72
    assert read("waiting_p90", people, queue="default", cluster="").keys() == {"default"}
