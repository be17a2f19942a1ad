"""Measure what the engine divides among queues: the GPUs that each deserves, holds, waits for, borrows and lends.

A look at the session of a cycle each minute. What did not change is not stored again, except to confirm it.
"""

from collections.abc import Callable, Mapping
from datetime import datetime

from hekla.apps.clusters.models import Cluster
from hekla.apps.measures import queue_services
from hekla.apps.measures.queue_levels import CONFIRM_EVERY, LOOK_EVERY
from hekla.apps.measures.queue_services import QueueAmounts
from hekla.apps.queues import selectors as queues
from hekla.controller.lease_context import LeaseContext
from hekla.domain.card_resources import is_card
from hekla.domain.resources import Resources
from hekla.engine import queue_shares
from hekla.engine.faults import ExtensionFailed
from hekla.engine.queue_shares import QueueShares
from hekla.engine.queue_tree import ROOT
from hekla.engine.session import Session

AmountsByQueue = Mapping[tuple[str, str], QueueAmounts]
"""By name of the queue and resource."""
_NO_QUEUE = ""
"""No queue has this name, so the order of pending jobs, the most expensive part, is not computed."""


class QueueMeter:
    """Looks at the queues of one cluster, and stores what changed."""

    def __init__(self) -> None:
        self._looked_at: datetime | None = None
        self._found: AmountsByQueue | None = None
        self._stored: tuple[datetime, AmountsByQueue] | None = None

    def look(self, now: datetime) -> Callable[[Session], None] | None:
        """A callback that reads the amounts from the next cycle's session; None if they were read recently."""
        if self._looked_at is not None and now - self._looked_at < LOOK_EVERY:
            return None
        self._looked_at = now
        return self._read

    def _read(self, session: Session) -> None:
        try:
            self._found = _amounts(session)
        except ExtensionFailed:  # the cycle reports it
            self._found = None

    def store(self, cluster: Cluster, lease: LeaseContext, *, now: datetime) -> None:
        """Store what was read, if it changed or is to be confirmed. Raises LeaseLost."""
        found, self._found = self._found, None
        if found is None:
            return
        if self._stored is not None:
            at, before = self._stored
            if found == before and now - at < CONFIRM_EVERY:
                return
        ids = {queue.name: queue.pk for queue in queues.of_cluster(cluster)}
        rows = {(ids[name], resource): one for (name, resource), one in found.items() if name in ids}
        queue_services.observe_queues(lease.cluster_id, lease.epoch, rows, now=now)
        self._stored = now, found


def _amounts(session: Session) -> AmountsByQueue:
    cards = [
        name
        for name, amount in zip(session.dimensions.names, session.total_resources.tolist(), strict=True)
        if amount and is_card(name)
    ]
    if not cards:
        return {}
    shares = queue_shares.queue_shares(session, waiting_in=_NO_QUEUE)
    waiting = queue_shares.pending_amounts(session)
    inner = {above for one in shares.values() for above in one.ancestors}
    return {
        (name, card): _of_card(one, waiting.get(name, Resources()), card, is_inner=name in inner)
        for name, one in shares.items()
        if name != ROOT
        for card in cards
    }


def _of_card(shares: QueueShares, waiting: Resources, card: str, *, is_inner: bool) -> QueueAmounts:
    every = (shares.deserved, shares.allocated, waiting, shares.borrowed, shares.lent)
    return QueueAmounts(is_inner, *(round(one.amount(card)) for one in every))
