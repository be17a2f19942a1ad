"""Amounts of queues over time: what is stored, its sums, who sees what, and why a queue deserves its share."""

import csv
import html
import re
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps import due_work
from hekla.apps.accounts.models import User
from hekla.apps.clusters import leases
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster, NodeFacts
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Job
from hekla.apps.measures import queue_selectors, queue_services, queue_sums
from hekla.apps.measures.levels import DAY, HOUR, floor
from hekla.apps.measures.models import MeasuredQueues, NodeGpuTime, QueueShareSpan, QueueShareTime
from hekla.apps.measures.queue_levels import HOLDS, KEEP_SPANS
from hekla.apps.measures.queue_selectors import QueueUseQuery, QueueUseReport
from hekla.apps.measures.queue_services import QueueAmounts
from hekla.apps.measures.selectors import Period
from hekla.apps.queues import services as queues
from hekla.controller import tasks
from hekla.domain.errors import NotFound
from hekla.lib import clock
from hekla.scheduling import occupancy
from hekla.simulation.share_derivation import explain_share
from hekla.simulation.snapshot_cache import forget_all

__all__ = ["db", "people", "shared_people"]
As = Callable[[User], Client]
MINUTE = timedelta(minutes=1)
GPU = "nvidia.com/gpu"
HOUR_US = 3_600_000_000
BEGIN = floor(clock.now(), HOUR) - 5 * HOUR


@pytest.fixture
def epoch(people: People) -> int:
    """The lease of the cluster, which is no simulated one here."""
    Cluster.objects.filter(pk=people.cluster.pk).update(kind="local")
    found = leases.take(people.cluster, "test", now=clock.now())
    assert found is not None
    return found


def gpus(deserved: int = 0, allocated: int = 0, waiting: int = 0, *, is_inner: bool = False) -> QueueAmounts:
    amounts = (deserved, allocated, waiting, max(allocated - deserved, 0), 0)
    return QueueAmounts(is_inner, *(1000 * one for one in amounts))


def observe(people: People, epoch: int, at: datetime, found: dict[int, QueueAmounts]) -> None:
    rows = {(queue, GPU): amounts for queue, amounts in found.items()}
    queue_services.observe_queues(people.cluster.pk, epoch, rows, now=at)


def report(people: People, now: datetime, user: User | None = None, **query: Any) -> QueueUseReport:
    return queue_selectors.queue_use(user or people.ada, QueueUseQuery(**query), now=now)


def second_queue(people: People, **more: Any) -> int:
    return queue_of(people, "other", **more)


def queue_of(people: People, name: str, **more: Any) -> int:
    return queues.create(cluster=people.cluster, name=name, actor=PLATFORM, now=clock.now(), **more).pk


def test_only_changes_are_stored(people: People, epoch: int) -> None:
    for minute in range(3):
        observe(people, epoch, BEGIN + minute * MINUTE, {people.queue.pk: gpus(4, 2)})
    observe(people, epoch, BEGIN + 3 * MINUTE, {people.queue.pk: gpus(4, 3)})
    observe(people, epoch, BEGIN + 4 * MINUTE, {people.queue.pk: gpus()})
    spans = QueueShareSpan.objects.order_by("begin_at").values_list("begin_at", "end_at", "allocated")
    assert list(spans) == [
        (BEGIN, BEGIN + 3 * MINUTE, 2000),
        (BEGIN + 3 * MINUTE, BEGIN + 4 * MINUTE, 3000),
    ]
    observe(people, epoch, BEGIN + 5 * MINUTE, {})
    with pytest.raises(leases.LeaseLost):
        observe(people, epoch + 1, BEGIN, {})


def test_a_cluster_without_gpus_has_no_rows(people: People, epoch: int) -> None:
    observe(people, epoch, BEGIN, {})
    observe(people, epoch, BEGIN, {people.queue.pk: gpus()})
    assert not MeasuredQueues.objects.exists()


def test_nobody_knows_what_was_after_the_last_look(people: People, epoch: int) -> None:
    observe(people, epoch, BEGIN, {people.queue.pk: gpus(4, 2)})
    late = BEGIN + 2 * HOUR
    assert report(people, late).queues[0].total.allocated == 2 * HOUR_US * (HOLDS / HOUR)
    observe(people, epoch, late, {people.queue.pk: gpus(4, 2)})
    assert QueueShareSpan.objects.earliest("begin_at").end_at == BEGIN + HOLDS
    assert report(people, late).queues[0].total.allocated == 2 * HOUR_US * (HOLDS / HOUR)


def busy_hours(people: People, epoch: int, other: int, hours: int = 3) -> datetime:
    """The default queue is below what it deserves for 20 minutes of each hour, while the other one is above."""
    end = BEGIN + hours * HOUR
    for minute in range(0, hours * 60, 10):
        lacks = minute % 60 < 20
        observe(
            people,
            epoch,
            BEGIN + minute * MINUTE,
            {people.queue.pk: gpus(4, 2, 3) if lacks else gpus(4, 4), other: gpus(2, 4) if lacks else gpus(2, 2)},
        )
    observe(people, epoch, end, {})
    return end


def test_sums_equal_the_spans(people: People, epoch: int) -> None:
    end = busy_hours(people, epoch, second_queue(people))
    queries = [{"period": period, "until": end} for period in (Period.HOUR, Period.DAY, Period.WEEK, Period.MONTH)]
    before = [report(people, end + HOUR, **query) for query in queries]
    assert not QueueShareTime.objects.exists()
    queue_services.roll_up_queues(now=end + HOUR, most_seconds=60)
    assert {row.level for row in QueueShareTime.objects.all()} == {60, 1440}
    assert [report(people, end + HOUR, **query) for query in queries] == before
    day = before[1]
    mine = next(one for one in day.queues if one.name == "default")
    assert mine.total.deserved == 12 * HOUR_US
    assert mine.total.allocated == (2 * 1 + 4 * 2) * HOUR_US
    assert mine.total.waiting == 3 * HOUR_US
    assert [(one.queue, one.other, one.milliseconds, one.first_at) for one in day.starved] == [
        ("default", "other", 3_600_000, BEGIN)
    ]
    assert day.starved[0].last_at == end - 40 * MINUTE
    later = floor(end, DAY) + 2 * DAY  # the day of these hours is over: it is read from its own rows
    MeasuredQueues.objects.update(until=later)
    with CaptureQueriesContext(connection) as statements:
        assert report(people, later, period=Period.MONTH).starved == day.starved
    assert any("measures_starvedqueueday" in statement["sql"] for statement in statements)
    assert not any("measures_starvedqueuetime" in statement["sql"] for statement in statements)


def test_a_name_that_is_too_long_stops_no_controller(people: People, epoch: int) -> None:
    """Nodes report the names of resources."""
    found = {(people.queue.pk, f"{'x' * 250}.io/gpu"): gpus(4, 2), (people.queue.pk, GPU): gpus(4, 2)}
    queue_services.observe_queues(people.cluster.pk, epoch, found, now=BEGIN)
    assert [span.resource for span in QueueShareSpan.objects.all()] == [GPU]


def test_a_paused_cluster_hides_nothing_of_the_others(people: People, epoch: int) -> None:
    other = Cluster.objects.create(name="paused", kind="local", config={}, created_at=BEGIN)
    MeasuredQueues.objects.create(pk=other.pk, looked_at=BEGIN, until=BEGIN, due_at=BEGIN + HOUR)
    observe(people, epoch, BEGIN + 3 * HOUR, {people.queue.pk: gpus(4, 2)})
    assert report(people, BEGIN + 3 * HOUR + MINUTE).measured_until == BEGIN + 3 * HOUR + MINUTE
    assert report(people, BEGIN + 3 * HOUR + MINUTE, cluster="paused").measured_until == BEGIN + HOLDS


def test_queues_below_and_above_meet_in_each_look(people: People, epoch: int) -> None:
    """As a comparison of all times with all others finds them."""
    random, ids = Random(3), [people.queue.pk, *(queue_of(people, f"q{number}") for number in range(5))]
    looks = [(BEGIN + minute * MINUTE, {pk: gpus(*dealt(random)) for pk in ids}) for minute in range(0, 90, 7)]
    for at, found in looks:
        observe(people, epoch, at, found)
    end = BEGIN + 95 * MINUTE
    want: Counter[tuple[int, int]] = Counter()
    for (at, found), until in zip(looks, [*(at for at, _found in looks[1:]), end], strict=True):
        for below, mine in found.items():
            for above, theirs in found.items():
                if mine.allocated < mine.deserved and mine.waiting and theirs.allocated > theirs.deserved:
                    want[below, above] += (until - at) // timedelta(milliseconds=1)
    rows = queue_sums.pairs([people.cluster.pk], BEGIN, end, now=end)
    assert want
    assert {(below, above): ms for _cluster, _gpu, below, above, ms, *_times in rows} == want


def dealt(random: Random) -> tuple[int, int, int]:
    """Random amounts: deserved, allocated, waiting."""
    return random.randint(0, 3), random.randint(0, 3), random.randint(0, 1)


def test_hours_are_due_once_they_are_over(people: People, epoch: int) -> None:
    assert tasks  # declares the work
    name = "hekla.measures.roll_up_queues"
    observe(people, epoch, BEGIN + MINUTE, {people.queue.pk: gpus(4, 2)})
    assert due_work.tasks_with_work([name], now=BEGIN + HOUR) == []
    assert due_work.tasks_with_work([name], now=BEGIN + HOUR + MINUTE) == [name]
    queue_services.roll_up_queues(now=BEGIN + HOUR + MINUTE)
    assert due_work.tasks_with_work([name], now=BEGIN + HOUR + MINUTE) == []
    assert QueueShareTime.objects.get(level=60).allocated == 2 * HOUR_US * (HOLDS / HOUR)


def test_an_hour_that_a_process_did_not_finish_is_added_later(
    people: People, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process does not add it at the same time."""
    observe(people, epoch, BEGIN, {people.queue.pk: gpus(4, 2)})
    with monkeypatch.context() as broken:
        broken.setattr(queue_sums, "write_hour", lambda *_args, **_more: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            queue_services.roll_up_queues(now=BEGIN + HOUR + MINUTE)
    queue_services.roll_up_queues(now=BEGIN + HOUR + 2 * MINUTE)
    assert not QueueShareTime.objects.exists()
    queue_services.roll_up_queues(now=BEGIN + HOUR + 7 * MINUTE)
    assert QueueShareTime.objects.get(level=60).allocated == 2 * HOUR_US * (HOLDS / HOUR)
    assert MeasuredQueues.objects.get().until == BEGIN + HOUR


def test_a_cluster_that_nobody_measures_is_forgotten(people: People, epoch: int) -> None:
    observe(people, epoch, BEGIN, {people.queue.pk: gpus(4, 2)})
    queue_services.roll_up_queues(now=BEGIN + KEEP_SPANS + 2 * HOUR, most_seconds=60)
    assert not MeasuredQueues.objects.exists()
    assert not QueueShareSpan.objects.exists()


def test_sums_of_parents_are_not_added_twice(people: People, epoch: int) -> None:
    observe(people, epoch, BEGIN, {people.queue.pk: gpus(4, 2, is_inner=True), second_queue(people): gpus(4, 2)})
    found = report(people, BEGIN + MINUTE)
    assert [one.name for one in found.leaves] == ["other"]
    assert len(found.queues) == 2


def test_people_see_their_queues(people: People, epoch: int, as_: As) -> None:
    end = busy_hours(people, epoch, second_queue(people, tenants=[people.other]))
    own = report(people, end, people.alice)
    assert [one.name for one in own.queues] == ["default"]
    assert [(one.queue, one.other) for one in own.starved] == [("default", "")]
    assert report(people, end, people.charlie, queue="other").queues[0].name == "other"
    with pytest.raises(NotFound):
        report(people, end, people.alice, queue="other")
    page = as_(people.alice).get(reverse("operations:queues") + f"?until={end:%Y-%m-%dT%H:%M:%SZ}").content.decode()
    assert "other queues" in page
    assert '"name":"other"' not in page
    assert "/queues/other/" not in page


def test_the_page_and_its_file(people: People, epoch: int, as_: As) -> None:
    end = busy_hours(people, epoch, second_queue(people))
    queue_services.roll_up_queues(now=end + MINUTE, most_seconds=60)
    client, query = as_(people.ada), f"?until={end:%Y-%m-%dT%H:%M:%SZ}"
    with CaptureQueriesContext(
        connection,
    ) as found:
        page = html.unescape(client.get(reverse("operations:queues") + query).content.decode())
    assert len(found) <= 26
    assert re.search(r'data-label="Deserved">12.0<', page)
    assert "1 h" in page  # the time below the share
    chosen = html.unescape(client.get(reverse("operations:queues") + query + "&queue=default").content.decode())
    assert '"name":"Deserved"' in chosen
    text = client.get(reverse("operations:queues_file") + query).content.decode()
    rows = [row for row in csv.DictReader(text.lstrip("\ufeff").splitlines()) if row["queue"] == "default"]
    assert [(row["deserved"], row["waiting"]) for row in rows] == [("4.0", "1.0")] * 3


def test_an_empty_page_says_what_to_do(people: People, as_: As) -> None:
    page = as_(people.alice).get(reverse("operations:queues")).content.decode()
    assert "No queue is measured yet" in page


def test_why_a_queue_deserves_its_share(people: People, as_: As) -> None:
    """The sentences end with what the engine decides. Queues that the person cannot see have no names."""
    forget_all()
    facts = NodeFacts("n1", {"cpu": "4", "memory": "8Gi", "pods": "10", GPU: "8"}, {})
    clusters.observe_nodes(people.cluster, [facts], now=clock.now())
    second_queue(people, tenants=[people.other], values={"weight": 3})
    people.submit("train", tasks=[{"name": "m", "command": ["true"], "resources": {"cpu": "1", GPU: "2"}}])
    found = explain_share(people.alice, people.queue)
    assert found is not None
    assert (found.resource, found.plugin, found.total) == (GPU, "proportion", 8000)
    assert [(one.name, one.count, one.weight) for one in found.rows] == [("default", 1, 1), ("", 1, 3)]
    page = as_(people.alice).get(reverse("queues:share", args=["default"])).content.decode()
    assert "The cluster has 8 GPU." in page
    assert "1 other queue" in page
    assert "/queues/other/" not in page
    assert "other" in as_(people.ada).get(reverse("queues:share", args=["default"]) + "?resource=cpu").content.decode()
    assert as_(people.alice).get(reverse("queues:share", args=["other"])).status_code == 404


def test_the_wall_has_the_present_figures(people: People, as_: As) -> None:
    occupancy.forget()
    facts = [
        NodeFacts("n1", {"cpu": "4", "memory": "8Gi", "pods": "10", GPU: "8"}, {}),
        NodeFacts("n2", {"cpu": "4", "memory": "8Gi", "pods": "10", GPU: "4"}, {}, is_ready=False),
    ]
    clusters.observe_nodes(people.cluster, facts, now=clock.now())
    job = people.submit("broken")
    Job.objects.filter(pk=job.pk).update(phase="failed", finished_at=clock.now())
    client = as_(people.ada)
    page = client.get(reverse("operations:wall") + "?cluster=sim&seconds=7").content.decode()
    assert 'data-wall-seconds="7"' in page
    with CaptureQueriesContext(connection) as found:
        parts = client.get(reverse("operations:wall_state") + "?cluster=sim").content.decode()
    assert len(found) <= 16
    text = " ".join(re.sub(r"<[^>]+>", " ", parts).split())
    assert "0 used 8 free 4 on closed nodes" in text
    assert "broken alice default" in text
    assert "1 of 2 nodes" in text
    assert "n2 sim 4 Not ready" in text
    assert "simulated" in text
    assert "No node has reported GPUs." in client.get(reverse("operations:wall_state")).content.decode()
    assert as_(people.alice).get(reverse("operations:wall")).status_code == 404
    assert client.get(reverse("operations:wall_state") + "?cluster=nowhere").status_code == 404


@pytest.mark.parametrize(("text", "seconds"), [("x", 15), ("0", 5), ("999", 600)])
def test_seconds_of_the_wall_are_bounded(people: People, as_: As, text: str, seconds: int) -> None:
    page = as_(people.ada).get(reverse("operations:wall"), {"seconds": text}).content.decode()
    assert f'data-wall-seconds="{seconds}"' in page


def test_nodes_have_hours_and_cards(people: People, as_: As) -> None:
    occupancy.forget()
    card = {"resource": GPU, "index": 0, "id": "GPU-1", "model": "A100", "memory_mib": 81920, "is_healthy": True}
    facts = NodeFacts("n1", {"cpu": "4", "memory": "8Gi", "pods": "10", GPU: "8"}, {}, cards=[card])
    clusters.observe_nodes(people.cluster, [facts], now=clock.now())
    hour = floor(clock.now(), HOUR)
    of = {"level": 60, "cluster_id": people.cluster.pk, "node": "n1", "model": "A100"}
    NodeGpuTime.objects.create(**of, at=hour - HOUR, useful=2 * HOUR_US, gang=HOUR_US, free=5 * HOUR_US)
    page = as_(people.ada).get(reverse("operations:nodes") + "?cluster=sim").content.decode()
    assert '<td class="held-2">38</td>' in page
    assert "A100 0" in page
    assert "simulated" in page
    assert "No nodes with GPUs" in as_(people.ada).get(reverse("operations:nodes")).content.decode()
    assert as_(people.alice).get(reverse("operations:nodes")).status_code == 404
