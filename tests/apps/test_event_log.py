"""The event log: numbers follow commit order, rolled-back events do not exist, readers miss nothing."""

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


def record_event(name: str, subject: str = "tenant:1") -> None:
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


def is_any_lock_waiting() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
        return bool(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
def test_reader_misses_nothing_with_concurrent_writers() -> None:
    """Writers hold their transactions open for different times. A reader that only goes forward sees every event."""
    read_numbers: list[int] = []
    finished = threading.Event()

    def write(writer: int) -> None:
        for round_ in range(ROUNDS):
            with unit_of_work():
                record_event(f"{writer}-{round_}-a")
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_sleep(%s)", [0.001 * ((writer * 7 + round_) % 5)])
                record_event(f"{writer}-{round_}-b")

    def read() -> None:
        cursor = 0
        while True:
            is_last_pass = finished.is_set()
            for event in selectors.after(cursor, limit=7):
                read_numbers.append(event.pk)
                cursor = event.pk
            if is_last_pass and selectors.last_number() == cursor:
                return

    reader = in_thread(read)
    writers = [in_thread(lambda n=n: write(n)) for n in range(WRITERS)]
    for writer in writers:
        writer.join()
    finished.set()
    reader.join()
    everything = list(LoggedEvent.objects.order_by("id").values_list("id", flat=True))
    assert len(everything) == WRITERS * ROUNDS * 2
    assert read_numbers == everything


@pytest.mark.django_db(transaction=True)
def test_failed_transaction_records_nothing() -> None:
    def fail() -> None:
        with unit_of_work():
            record_event("never")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not LoggedEvent.objects.exists()
    with unit_of_work():
        record_event("later")
    assert [event.payload["name"] for event in selectors.after(0, limit=10)] == ["later"]


@pytest.mark.django_db(transaction=True)
def test_nested_units_of_work_are_one_transaction() -> None:
    received: list[set[str]] = []

    def receive(topics, **_kwargs) -> None:
        received.append(topics)

    recorded.connect(receive)
    try:
        with unit_of_work():
            record_event("outer", "tenant:1")
            with unit_of_work():
                record_event("inner", "tenant:2")
            assert received == []
    finally:
        recorded.disconnect(receive)
    assert received == [{"tenant:1", "tenant:2"}]
    assert LoggedEvent.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_writers_of_one_row_do_not_deadlock() -> None:
    """One writer has locked a cluster. The other refers to that row, and waits without the number lock."""
    cluster = services.create(name="c", kind="simulated", config={}, actor=PLATFORM, now=clock.now())

    def observe() -> None:
        services.observe_nodes(cluster, [NodeFacts("n", {}, {})], now=clock.now())

    with unit_of_work():
        Cluster.objects.select_for_update().get(pk=cluster.pk)
        other = in_thread(observe)
        give_up_at = time.monotonic() + 30
        while not is_any_lock_waiting() and time.monotonic() < give_up_at:
            time.sleep(0.02)
        record_event("first")
    other.join(60)
    assert cluster.nodes.count() == 1
    assert [event.kind for event in selectors.after(0, limit=10)][1:] == ["TenantCreated", "NodeChanged"]


@pytest.mark.django_db
def test_failed_nested_unit_records_nothing() -> None:
    def fail() -> None:
        with unit_of_work():
            record_event("within")
            raise RuntimeError

    with unit_of_work():
        record_event("before")
        with pytest.raises(RuntimeError):
            fail()
        record_event("after")
    assert [one.payload["name"] for one in LoggedEvent.objects.order_by("id")] == ["before", "after"]


@pytest.mark.django_db
def test_recording_needs_a_unit_of_work() -> None:
    with transaction.atomic(), pytest.raises(RuntimeError):
        record_event("lost")


@pytest.mark.django_db(transaction=True)
def test_every_stored_event_reads_back_as_its_type() -> None:
    with unit_of_work():
        record_event("lab")
    event = LoggedEvent.objects.get()
    assert events.parse(event.kind, event.payload) == events.TenantCreated(name="lab")


@pytest.mark.django_db(transaction=True)
def test_rolled_back_numbers_are_reused() -> None:
    with unit_of_work():
        record_event("first")

    @transaction.atomic
    def fail() -> None:
        with unit_of_work():
            record_event("never")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with unit_of_work():
        record_event("second")
    first, second = selectors.after(0, limit=10)
    assert second.pk == first.pk + 1
    assert selectors.lost() == 0


@pytest.mark.django_db(transaction=True)
def test_purged_numbers_are_not_lost_and_never_reused() -> None:
    with unit_of_work():
        record_event("stays", "tenant:1")
        for at in range(3):
            record_event(f"goes-{at}", "tenant:2")
    last = selectors.last_number()
    with unit_of_work():
        assert purge({"tenant:2"}) == 3
    with unit_of_work():
        record_event("next")
    assert [event.pk for event in selectors.after(0, limit=10)] == [last - 3, last + 1]
    assert selectors.lost() == 0
    LoggedEvent.objects.filter(pk=last + 1).delete()
    assert selectors.lost() == 1
