"""The log: numbers are in the order of commits, nothing is told of what was not done, readers miss nothing."""

import threading
import time

import pytest
from django.db import connection, connections, transaction

from hekla.apps.clusters import services
from hekla.apps.clusters.models import Cluster, NodeFacts
from hekla.apps.event_log import selectors
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM, purge, record, unit_of_work
from hekla.apps.event_log.signals import recorded
from hekla.domain import events
from hekla.lib import clock

WRITERS, ROUNDS = 6, 25


def tell(name: str, subject: str = "tenant:1") -> None:
    record(events.TenantCreated(name=name), subject=subject, actor=PLATFORM, at=clock.now())


def in_thread(work) -> threading.Thread:
    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def is_anybody_waiting() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
        return bool(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
def test_a_reader_beside_concurrent_writers_steps_over_nothing() -> None:
    """Writers hold their transactions open for different times; a reader that only goes forward sees every event."""
    seen: list[int] = []
    finished = threading.Event()

    def write(writer: int) -> None:
        for turn in range(ROUNDS):
            with unit_of_work():
                tell(f"{writer}-{turn}-a")
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_sleep(%s)", [0.001 * ((writer * 7 + turn) % 5)])
                tell(f"{writer}-{turn}-b")

    def read() -> None:
        cursor = 0
        while True:
            last_look = finished.is_set()
            for event in selectors.after(cursor, limit=7):
                seen.append(event.pk)
                cursor = event.pk
            if last_look and selectors.last_number() == cursor:
                return

    reader = in_thread(read)
    writers = [in_thread(lambda n=n: write(n)) for n in range(WRITERS)]
    for writer in writers:
        writer.join()
    finished.set()
    reader.join()
    everything = list(LoggedEvent.objects.order_by("id").values_list("id", flat=True))
    assert len(everything) == WRITERS * ROUNDS * 2
    assert seen == everything


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_fails_tells_nothing() -> None:
    def fail() -> None:
        with unit_of_work():
            tell("never")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not LoggedEvent.objects.exists()
    with unit_of_work():
        tell("later")
    assert [event.payload["name"] for event in selectors.after(0, limit=10)] == ["later"]


@pytest.mark.django_db(transaction=True)
def test_a_unit_inside_a_unit_is_one_transaction() -> None:
    heard: list[set[str]] = []

    def hear(topics, **_kwargs) -> None:
        heard.append(topics)

    recorded.connect(hear)
    try:
        with unit_of_work():
            tell("outer", "tenant:1")
            with unit_of_work():
                tell("inner", "tenant:2")
            assert heard == []
    finally:
        recorded.disconnect(hear)
    assert heard == [{"tenant:1", "tenant:2"}]
    assert LoggedEvent.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_two_who_write_of_the_same_row_wait_for_one_another_and_no_longer() -> None:
    """One has locked a cluster; the other writes what refers to it, and must not hold the numbers meanwhile."""
    cluster = services.create(name="c", kind="simulated", config={}, actor=PLATFORM, now=clock.now())

    def observe() -> None:
        services.observe_nodes(cluster, [NodeFacts("n", {}, {})], now=clock.now())

    with unit_of_work():
        Cluster.objects.select_for_update().get(pk=cluster.pk)
        other = in_thread(observe)
        give_up_at = time.monotonic() + 30
        while not is_anybody_waiting() and time.monotonic() < give_up_at:
            time.sleep(0.02)
        tell("first")
    other.join(60)
    assert cluster.nodes.count() == 1
    assert [event.kind for event in selectors.after(0, limit=10)][1:] == ["TenantCreated", "NodeChanged"]


@pytest.mark.django_db
def test_what_fails_within_a_unit_of_work_is_not_told() -> None:
    def fail() -> None:
        with unit_of_work():
            tell("within")
            raise RuntimeError

    with unit_of_work():
        tell("before")
        with pytest.raises(RuntimeError):
            fail()
        tell("after")
    assert [one.payload["name"] for one in LoggedEvent.objects.order_by("id")] == ["before", "after"]


@pytest.mark.django_db
def test_outside_a_unit_of_work_nothing_can_be_recorded() -> None:
    with transaction.atomic(), pytest.raises(RuntimeError):
        tell("lost")


@pytest.mark.django_db(transaction=True)
def test_every_stored_event_reads_back_as_its_type() -> None:
    with unit_of_work():
        tell("lab")
    event = LoggedEvent.objects.get()
    assert events.parse(event.kind, event.payload) == events.TenantCreated(name="lab")


@pytest.mark.django_db(transaction=True)
def test_numbers_that_were_taken_in_vain_are_given_back() -> None:
    with unit_of_work():
        tell("first")

    @transaction.atomic
    def fail() -> None:
        with unit_of_work():
            tell("never")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with unit_of_work():
        tell("second")
    first, second = selectors.after(0, limit=10)
    assert second.pk == first.pk + 1
    assert selectors.lost() == 0


@pytest.mark.django_db(transaction=True)
def test_what_is_purged_is_not_lost_and_its_numbers_never_come_again() -> None:
    with unit_of_work():
        tell("stays", "tenant:1")
        for at in range(3):
            tell(f"goes-{at}", "tenant:2")
    last = selectors.last_number()
    with unit_of_work():
        assert purge({"tenant:2"}) == 3
    with unit_of_work():
        tell("next")
    assert [event.pk for event in selectors.after(0, limit=10)] == [last - 3, last + 1]
    assert selectors.lost() == 0
    LoggedEvent.objects.filter(pk=last + 1).delete()
    assert selectors.lost() == 1
