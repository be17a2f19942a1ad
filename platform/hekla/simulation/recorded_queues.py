"""The queues of a cluster as they were: their present rows, with the recorded changes undone."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from copy import copy

from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log import selectors as event_log
from hekla.apps.queues import selectors
from hekla.apps.queues.models import Queue
from hekla.domain import events
from hekla.engine.model import QueueSpec
from hekla.scheduling import snapshot
from hekla.simulation.lab.workload import QueueUpdate
from hekla.simulation.recorded_times import RecordedChange

_STATES = {
    events.QueueOpened.kind: Queue.State.OPEN,
    events.QueueDrained.kind: Queue.State.DRAINING,
    events.QueueClosed.kind: Queue.State.CLOSED,
}
_OTHERS = frozenset({"parent", "tenants"})
"""Fields that stay as they are today: rows in other tables."""


def queue_history(
    cluster: Cluster, changes: Iterable[RecordedChange]
) -> tuple[tuple[QueueSpec, ...], tuple[QueueUpdate, ...]]:
    """The queues before the first of these changes, and their updates in order."""
    by_queue: dict[str, list[RecordedChange]] = defaultdict(list)
    for change in changes:
        if isinstance(change.event, events.QueueChanged) or change.event.kind in _STATES:
            by_queue[change.subject].append(change)
    first, updates = list[QueueSpec](), list[QueueUpdate]()
    for row in selectors.of_cluster(cluster):
        own = by_queue.get(f"queue:{row.pk}", [])
        past = _before(row, own)
        first.append(snapshot.queue(past))
        for change in own:
            _apply(past, change.event)
            updates.append(QueueUpdate(change.at, snapshot.queue(past)))
    return tuple(first), tuple(sorted(updates, key=lambda one: one.at))


def _before(row: Queue, changes: Sequence[RecordedChange]) -> Queue:
    past = copy(row)
    for change in reversed(changes):
        if isinstance(change.event, events.QueueChanged):
            for name, field in change.event.changes.items():
                _set(past, name, field.old)
    if any(change.event.kind in _STATES for change in changes):
        past.state = _state_before(row, sum(change.event.kind in _STATES for change in changes))
    return past


def _state_before(row: Queue, later: int) -> Queue.State:
    """Its state before so many of its newest changes of state."""
    found = event_log.about(f"queue:{row.pk}").filter(kind__in=[*_STATES]).order_by("-id")
    kinds = list(found.values_list("kind", flat=True)[later : later + 1])
    return _STATES[kinds[0]] if kinds else Queue.State.OPEN


def _apply(row: Queue, event: events.Event) -> None:
    if isinstance(event, events.QueueChanged):
        for name, field in event.changes.items():
            _set(row, name, field.new)
    else:
        row.state = _STATES[event.kind]


def _set(row: Queue, name: str, value: object) -> None:
    if name not in _OTHERS and hasattr(row, name):
        setattr(row, name, value)
