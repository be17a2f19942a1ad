"""Stores what the scheduler divided among the queues of a cluster, and adds it up."""

import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from hekla.apps.clusters import leases
from hekla.apps.event_log.services import unit_of_work
from hekla.apps.measures import queue_sums
from hekla.apps.measures.capacities import MOST_GPUS
from hekla.apps.measures.levels import HOUR, KEEP_DAYS, KEEP_HOURS, floor
from hekla.apps.measures.models import MeasuredQueues, QueueShareSpan, QueueShareTime, StarvedQueueDay, StarvedQueueTime
from hekla.apps.measures.queue_levels import HOLDS, KEEP_SPANS, LAG, MOST_ROWS
from hekla.apps.measures.retention import delete_oldest

_MOST_SECONDS = 2.0
_PATIENCE = timedelta(minutes=5)
"""An hour that was begun so long ago, and not added, is added by another process."""
_NAME_LENGTH = 253


class QueueAmounts(NamedTuple):
    """The amounts of a queue in thousandths of a GPU; see `models`."""

    is_inner: bool
    deserved: int
    allocated: int
    waiting: int
    borrowed: int
    lent: int


@unit_of_work()
def observe_queues(
    cluster_id: int, epoch: int, found: Mapping[tuple[int, str], QueueAmounts], *, now: datetime
) -> None:
    """Store the amounts by queue (primary key) and resource, where they differ from the stored ones.

    Those that are all 0 are not stored, nor resources with names that are too long: nodes report them. No event:
    amounts change all the time. Raises LeaseLost.
    """
    leases.assert_held(cluster_id, epoch)
    counted = {key: _bounded(one) for key, one in found.items() if any(one[1:]) and len(key[1]) <= _NAME_LENGTH}
    fresh = dict(list(counted.items())[:MOST_ROWS])
    measured = MeasuredQueues.objects.filter(pk=cluster_id).first()
    if measured is None and not fresh:
        return
    _end_forgotten(measured, now)
    stored = {(span.queue_id, span.resource): span for span in _open_spans(cluster_id)}
    gone = [span.pk for key, span in stored.items() if fresh.get(key) != _amounts(span)]
    QueueShareSpan.objects.filter(pk__in=gone).update(end_at=now)
    QueueShareSpan.objects.bulk_create(
        [
            QueueShareSpan(cluster_id=cluster_id, queue_id=key[0], resource=key[1], begin_at=now, **one._asdict())
            for key, one in fresh.items()
            if key not in stored or _amounts(stored[key]) != one
        ],
        batch_size=1000,
    )
    if measured is None:
        hour = floor(now, HOUR)
        MeasuredQueues.objects.create(pk=cluster_id, looked_at=now, until=hour, due_at=hour + HOUR + LAG)
    else:
        MeasuredQueues.objects.filter(pk=cluster_id).update(looked_at=now)


def _open_spans(cluster_id: int) -> list[QueueShareSpan]:
    return list(QueueShareSpan.objects.filter(cluster_id=cluster_id, end_at=None))


def _bounded(amounts: QueueAmounts) -> QueueAmounts:
    return QueueAmounts(amounts.is_inner, *(min(max(one, 0), MOST_GPUS) for one in amounts[1:]))


def _amounts(span: QueueShareSpan) -> QueueAmounts:
    return QueueAmounts(*(getattr(span, name) for name in QueueAmounts._fields))


def _end_forgotten(measured: MeasuredQueues | None, now: datetime) -> None:
    """End the spans that nobody confirmed in time: nobody knows what was after that."""
    if measured is not None and now - measured.looked_at > HOLDS:
        forgotten = QueueShareSpan.objects.filter(cluster_id=measured.pk, end_at=None)
        forgotten.update(end_at=measured.looked_at + HOLDS)


def roll_up_queues(*, now: datetime, most_seconds: float = _MOST_SECONDS) -> None:
    """Add the hours that are over, and delete what is too old. Stops after some seconds; the next call goes on."""
    until = time.monotonic() + most_seconds
    while _add_hour(now=now) and time.monotonic() < until:
        pass
    for level, keep in ((60, KEEP_HOURS), (1440, KEEP_DAYS)):
        delete_oldest(QueueShareTime, "at", floor(now, HOUR) - keep, level=level)
    delete_oldest(StarvedQueueTime, "at", floor(now, HOUR) - KEEP_HOURS)
    delete_oldest(StarvedQueueDay, "at", floor(now, HOUR) - KEEP_DAYS)


def _add_hour(*, now: datetime) -> bool:
    """Add one hour of one cluster. Returns whether there was one."""
    measured = _claim(now=now)
    if measured is None:
        return False
    with unit_of_work():
        queue_sums.write_hour(measured.pk, measured.until, now=now)
        QueueShareSpan.objects.filter(cluster_id=measured.pk, end_at__lt=now - KEEP_SPANS).delete()
        until = measured.until + HOUR
        row = MeasuredQueues.objects.filter(pk=measured.pk, until=measured.until)
        row.update(until=until, due_at=until + HOUR + LAG)
    return True


@unit_of_work()
def _claim(*, now: datetime) -> MeasuredQueues | None:
    """The next cluster with an hour to add. Clusters that nobody measures any more are forgotten; their sums stay.

    Nobody else adds this hour in the next minutes. The row is not locked meanwhile: its controller writes it.
    """
    due = MeasuredQueues.objects.select_for_update(skip_locked=True).filter(due_at__lte=now)
    for measured in due.order_by("due_at", "pk"):
        if measured.looked_at >= now - KEEP_SPANS:
            measured.due_at = now + _PATIENCE
            measured.save(update_fields=["due_at"])
            return measured
        QueueShareSpan.objects.filter(cluster_id=measured.pk).delete()
        measured.delete()
    return None
