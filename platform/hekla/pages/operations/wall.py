"""What the wall screen shows: a few large figures of the present, for operators in a room."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from django.core.cache import cache
from redis.exceptions import RedisError

from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster, Node
from hekla.apps.job_history import labels
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.measures.selectors import MeasuresQuery
from hekla.apps.reports.overview import OverviewFigure, overview
from hekla.domain.card_resources import card_counts, model_of
from hekla.domain.phases import JobPhase
from hekla.domain.resources import Resources
from hekla.pages.queues import figures
from hekla.scheduling import occupancy
from hekla.scheduling.occupancy import Occupancy

MOST_ROWS = 8
_SHARED_SECONDS, _GLANCE_SECONDS = 10, 30
_GLANCE = (
    *(OverviewFigure.USEFUL, OverviewFigure.HELD, OverviewFigure.WASTED, OverviewFigure.WAIT_MOST),
    *(OverviewFigure.COMPLETED, OverviewFigure.FAILED, OverviewFigure.ALERTS),
)
ReadT = TypeVar("ReadT")
_DAY = timedelta(days=1)


@dataclass(slots=True)
class ModelCards:
    """The cards of one model: how many pods hold, how many are free, and how many are on nodes that take no pods."""

    name: str
    used: float = 0.0
    free: float = 0.0
    closed: float = 0.0

    @property
    def total(self) -> float:
        return self.used + self.free + self.closed

    @property
    def percent(self) -> int:
        return round(100 * self.used / self.total) if self.total else 0


@dataclass(frozen=True, slots=True)
class QueueLine:
    """A queue: the cards that its jobs hold, how many jobs run and wait, and since when the oldest one waits."""

    name: str
    cards: float
    running: int
    waiting: int
    oldest: datetime | None


@dataclass(frozen=True, slots=True)
class NodeTrouble:
    """A node that takes no pods. `is_ready`: it is only cordoned."""

    name: str
    cluster: str
    is_ready: bool
    cards: float


@dataclass(frozen=True, slots=True)
class Wall:
    """All views. Lists have `MOST_ROWS` rows at most, and the numbers count all."""

    at: datetime
    is_simulated: bool
    cards: ModelCards
    models: Sequence[ModelCards]
    queues: Sequence[QueueLine]
    waiting: int
    oldest: datetime | None
    failed: int
    failures: Sequence[Job]
    troubles: Sequence[NodeTrouble]
    troubled: int
    nodes: int
    glance: Mapping[OverviewFigure, float | None]


def wall(user: User, cluster: str, *, now: datetime) -> Wall:
    """The views of one cluster; of all that are not simulated if no name is given. Raises NotFound."""
    every = [clusters.get(cluster)] if cluster else [one for one in clusters.all_clusters() if not one.is_simulated]
    whole = occupancy.now()
    known = {one.pk: one for one in every}
    models = _models(whole, known)
    lines = _queues(user, whole, known)
    troubles = [_trouble(node, known) for node, _all in whole.nodes if node.cluster_id in known and not _is_open(node)]
    failed = jobs.visible_to(user).filter(
        cluster__in=known, phase=JobPhase.FAILED, finished_at__gte=now - _DAY, finished_at__lte=now
    )
    return Wall(
        at=now,
        is_simulated=any(one.is_simulated for one in every),
        cards=_added(models),
        models=models[:MOST_ROWS],
        queues=lines[:MOST_ROWS],
        waiting=sum(line.waiting for line in lines),
        oldest=min((line.oldest for line in lines if line.oldest), default=None),
        failed=failed.count(),
        failures=list(failed.select_related("owner", "queue").order_by("-finished_at")[:MOST_ROWS]),
        troubles=sorted(troubles, key=lambda one: (one.is_ready, -one.cards, one.name))[:MOST_ROWS],
        troubled=len(troubles),
        nodes=sum(node.cluster_id in known for node, _all in whole.nodes),
        glance=_glance(user, cluster, now),
    )


def _is_open(node: Node) -> bool:
    return node.is_ready and not node.is_cordoned


def _models(whole: Occupancy, known: Mapping[int, Cluster]) -> list[ModelCards]:
    """The cards by model, those with the most first."""
    found: dict[str, ModelCards] = {}
    for node, allocatable in whole.nodes:
        if node.cluster_id not in known:
            continue
        held = card_counts(whole.machines.get((node.cluster_id, node.name), Resources()))
        for resource, count in card_counts(allocatable).items():
            name = model_of(resource, node.labels)
            cards, used = found.setdefault(name, ModelCards(name)), held.get(resource, 0.0)
            cards.used += used
            if _is_open(node):
                cards.free += max(count - used, 0.0)
            else:
                cards.closed += max(count - used, 0.0)
    return sorted(found.values(), key=lambda cards: (-cards.total, cards.name))


def _added(models: Sequence[ModelCards]) -> ModelCards:
    return ModelCards(
        "",
        sum(cards.used for cards in models),
        sum(cards.free for cards in models),
        sum(cards.closed for cards in models),
    )


def _queues(user: User, whole: Occupancy, known: Mapping[int, Cluster]) -> list[QueueLine]:
    """The queues, those with pending jobs and the most cards first."""
    oldest = _oldest_waits()
    lines = [
        QueueLine(
            view.queue.name,
            sum(card_counts(view.use.used).values()),
            view.use.running,
            view.use.waiting,
            oldest.get(view.queue.pk),
        )
        for view in figures.queue_views(user, whole)
        if view.queue.cluster_id in known
    ]
    return sorted(lines, key=lambda line: (-line.cards, -line.waiting, -line.running, line.name))


def _oldest_waits() -> dict[int, datetime]:
    """When the oldest wait of each queue began. Pending jobs can be many."""
    return _shared("operations:oldest_waits", _SHARED_SECONDS, jobs.oldest_waits)


def _glance(user: User, cluster: str, now: datetime) -> dict[OverviewFigure, float | None]:
    """The figures of the overview of the last day. All who may open the screen see the same."""

    def read() -> dict[OverviewFigure, float | None]:
        found = overview(user, MeasuresQuery(cluster=cluster), now=now).figures
        return {what: found[what].value for what in _GLANCE if what in found}

    return _shared(f"operations:glance:{cluster}", _GLANCE_SECONDS, read)


def _shared(key: str, seconds: int, read: Callable[[], ReadT]) -> ReadT:
    """What all screens show, read once in so many seconds; each time if there is no cache."""
    try:
        known: ReadT | None = cache.get(key)
    except RedisError:
        return read()
    if known is None:
        known = read()
        cache.set(key, known, seconds)
    return known


def _trouble(node: Node, known: Mapping[int, Cluster]) -> NodeTrouble:
    cards = sum(card_counts(Resources.parse(node.allocatable)).values())
    return NodeTrouble(node.name, known[node.cluster_id].name, node.is_ready, cards)


def ago(since: datetime | None, now: datetime) -> str:
    """How long ago that was, in words; empty without an instant."""
    return labels.duration((now - since).total_seconds()) if since else ""
