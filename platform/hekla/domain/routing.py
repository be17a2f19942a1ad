"""Where a job goes that may go to one of several clusters: to the one that can start it first."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

_NOBODY_KNOWS = datetime.max.replace(tzinfo=UTC)


class Feasibility(StrEnum):
    """What a cluster says of a job, the best first.

    `UNANSWERED`: it did not answer in time; `DELEGATED`: Volcano schedules its jobs, so no estimate is known;
    `CLOSED`: its queue takes nothing in, so that the job cannot go there.
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
    """What would be of a job in a queue of a cluster.

    `evicts`: how many pods would go for it; `earliest`, `latest`: when it would start, None where nobody can tell;
    `load`: how much of the cluster is held of what the job asks for, 1: all; `reasons`: why it would wait.
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
        """As it is stored, sent and told."""
        times = {"earliest_at": self.earliest, "latest_at": self.latest}
        start_times = {name: at.isoformat() if at else None for name, at in times.items()}
        whole = {"cluster": self.cluster, "queue": self.queue, "chance": str(self.chance), "evicts": self.evicts}
        return {**whole, **start_times, "load": round(self.load, 3), "reasons": list(self.reasons[:1])}


def rank_candidates(prospects: Iterable[PlacementCandidate]) -> list[PlacementCandidate]:
    """The best first: who starts it now before all others, and of these who evicts nobody for it; then who starts it
    earlier; then the one that is used less; then by name.
    """
    return sorted(prospects, key=_rank)


def _rank(one: PlacementCandidate) -> tuple[object, ...]:
    when = one.earliest or _NOBODY_KNOWS
    return _ORDER[one.chance], bool(one.evicts), when, round(one.load, 3), one.cluster, one.queue
