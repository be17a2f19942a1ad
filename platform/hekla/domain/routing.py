"""Placement of a job of a federated queue: it goes to the cluster that can start it first."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

_UNKNOWN = datetime.max.replace(tzinfo=UTC)


class Feasibility(StrEnum):
    """Whether and when a cluster can start a job, best first.

    `UNANSWERED`: it did not answer in time; `DELEGATED`: Volcano schedules its jobs, so no estimate is known;
    `CLOSED`: its queue is closed.
    """

    NOW = "now"
    WAITS = "waits"
    UNANSWERED = "unanswered"
    DELEGATED = "delegated"
    PAUSED = "paused"
    AWAY = "away"
    NEVER = "never"
    CLOSED = "closed"


_ORDER = {chance: place for place, chance in enumerate(Feasibility)}


@dataclass(frozen=True, slots=True)
class PlacementCandidate:
    """A queue that the job could go to, with the estimate of its cluster.

    `evicts`: pods that would be evicted; `earliest`, `latest`: the estimated start, None if unknown; `load`: the share
    in use of the resources that the job requests, 1 is all; `reasons`: why it would wait.
    """

    cluster: str
    queue: str
    chance: Feasibility
    evicts: int = 0
    earliest: datetime | None = None
    latest: datetime | None = None
    load: float = 0.0
    reasons: tuple[dict[str, Any], ...] = ()

    def as_data(self) -> dict[str, Any]:
        """As JSON, for rows, events and REST."""
        times = {"earliest_at": self.earliest, "latest_at": self.latest}
        start_times = {name: at.isoformat() if at else None for name, at in times.items()}
        whole = {"cluster": self.cluster, "queue": self.queue, "chance": str(self.chance), "evicts": self.evicts}
        return {**whole, **start_times, "load": round(self.load, 3), "reasons": list(self.reasons[:1])}


def rank_candidates(prospects: Iterable[PlacementCandidate]) -> list[PlacementCandidate]:
    """Best first: feasible now, without evictions, earlier start, lower load, name."""
    return sorted(prospects, key=_rank)


def _rank(one: PlacementCandidate) -> tuple[object, ...]:
    when = one.latest or one.earliest or _UNKNOWN  # the earliest is now if only a time limit is known
    return _ORDER[one.chance], bool(one.evicts), when, round(one.load, 3), one.cluster, one.queue
