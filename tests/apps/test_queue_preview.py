"""Preview of a queue change: everyone's shares before and after, as the engine calculates them."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.apps.test_queue_pages import set_running

from hekla.apps.accounts.models import User
from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Pod
from hekla.apps.queues import services as queues
from hekla.apps.queues.models import Queue
from hekla.lib import clock
from hekla.simulation import queue_shares

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
CAPACITY_POLICY = """\
actions: "enqueue, allocate, reclaim"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
  - name: capacity
"""


@pytest.fixture
def borrower(people: People) -> Queue:
    """Plugin `capacity`: default deserves two CPUs and has work; the other queue runs four, more than it deserves."""
    now = clock.now()
    clusters.set_policy(people.cluster, CAPACITY_POLICY, note="", by=people.ada, actor=PLATFORM, now=now)
    queues.change(people.queue, {"deserved": {"cpu": "2"}}, by=people.ada, actor=PLATFORM, now=now)
    other = queues.create(
        cluster=people.cluster, name="other", values={"deserved": {"cpu": "4"}}, actor=PLATFORM, now=now
    )
    task = {"name": "main", "command": ["true"], "resources": {"cpu": "1"}, "replicas": 4, "min_available": 1}
    set_running(people.submit("runs", queue="other", tasks=[task], min_available=1), pods=4)
    waits = people.submit("waits")
    waits.gang_phase = "inqueue"
    waits.save()
    Pod.objects.create(
        job=waits, task="main", index=0, attempt=1, version=1, slot=99, address="127.0.0.1", phase="pending",
        created_at=now,
    )  # fmt: skip
    return other


def form(**changes: Any) -> dict[str, Any]:
    return {"weight": "1", "priority": "0", "deserved": "cpu=4", "reclaimable": "on"} | changes


def test_lower_deserved_share_causes_evictions(people: People, borrower: Queue) -> None:
    borrower.deserved = {"cpu": "3"}
    preview = queue_shares.forecast(borrower)
    assert [one["other"].deserved.amount("cpu") for one in (preview.before, preview.after)] == [4000, 3000]
    assert [one["other"].borrowed.amount("cpu") for one in (preview.before, preview.after)] == [0, 1000]
    assert [(loss.job.queue.name, loss.pods) for loss in preview.losses] == [("other", 1)]


def test_form_previews_and_saves_nothing(people: People, borrower: Queue, as_: As) -> None:
    address, ada = reverse("queues:preview", args=["other"]), as_(people.ada)
    before = LoggedEvent.objects.count()
    page = ada.post(address, form(deserved="cpu=3")).content.decode()
    assert "1 pod of job runs in queue other would be evicted" in page
    assert "<strong>3 CPU</strong>" in page
    assert "<strong>133%</strong>" in page
    assert "No pods would be evicted immediately." in ada.post(address, form()).content.decode()
    borrower.refresh_from_db()
    assert (borrower.deserved, LoggedEvent.objects.count()) == ({"cpu": "4"}, before)


@pytest.mark.parametrize(
    ("changes", "field", "sentence"),
    [
        ({"weight": "0"}, "id_weight", "between 1 and 65535"),
        ({"deserved": "cpu=lots"}, "id_deserved", "not an amount"),
        ({"guarantee": "cpu=8"}, "id_guarantee", "more than deserved"),
    ],
)
def test_errors_are_at_their_field(
    people: People, borrower: Queue, as_: As, changes: dict[str, str], field: str, sentence: str
) -> None:
    page = as_(people.ada).post(reverse("queues:preview", args=["other"]), form(**changes)).content.decode()
    assert "Shares of all queues" not in page
    assert sentence in page.partition(f'<div id="{field}_error"')[2].partition("</div>")[0]


def test_preview_of_a_new_queue(people: People, as_: As) -> None:
    address = reverse("queues:preview_new")
    assert "Enter a name and choose a cluster" in as_(people.ada).post(address, form()).content.decode()
    page = as_(people.ada).post(address, form(name="fresh", cluster=people.cluster.pk)).content.decode()
    assert "fresh" in page
    assert not Queue.objects.filter(name="fresh").exists()


def test_form_requests_the_preview(people: People, as_: As) -> None:
    page = as_(people.ada).get(reverse("queues:edit", args=["default"])).content.decode()
    assert f'hx-post="{reverse("queues:preview", args=["default"])}"' in page
    assert 'id="id_weight_error"' in page
