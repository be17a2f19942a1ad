"""What a cluster does now, for its page: the capacity of its nodes, its queues, its jobs, and its last events."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import get_language

from hekla.apps.accounts.models import User
from hekla.apps.audit.objects import NOUNS
from hekla.apps.audit.sentences import sentence
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs import selectors as jobs
from hekla.apps.queues import selectors as queues
from hekla.domain.phases import JobPhase
from hekla.pages.jobs import columns
from hekla.pages.jobs import context as job_rows
from hekla.pages.queues import figures
from hekla.pages.queues.figures import NodeView, QueueView, UsageBar
from hekla.scheduling.occupancy import Occupancy

_MOST_JOBS = 6
_MOST_QUEUES = 12
_MOST_EVENTS = 12
_MOST_REMARKS = 10
_UNREMARKABLE = ("ClusterObjectsChanged",)
"""Kinds that say only that something is to be read again."""


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """An event of the cluster as a sentence. `state` sets its colour."""

    event: LoggedEvent
    text: str
    state: str

    @property
    def key(self) -> str:
        """The id of its element."""
        return f"event-{self.event.pk}"


@dataclass(frozen=True, slots=True)
class ClusterUse:
    """What a list of clusters says about one: its nodes, their usage, and its running and pending jobs."""

    nodes: int = 0
    bars: Sequence[UsageBar] = ()
    running: int = 0
    waiting: int = 0


def use_by_cluster(whole: Occupancy) -> dict[int, ClusterUse]:
    """The use of each cluster that has nodes or queues, by its primary key. One query."""
    nodes, views = defaultdict(list), defaultdict(list)
    for node in figures.nodes(whole):
        nodes[node.node.cluster_id].append(node)
    for view in figures.views_of(queues.all_queues(), whole):
        views[view.queue.cluster_id].append(view)
    return {
        cluster: ClusterUse(
            len(nodes[cluster]),
            figures.together(nodes[cluster]),
            sum(view.use.running for view in views[cluster]),
            sum(view.use.waiting for view in views[cluster]),
        )
        for cluster in {*nodes, *views}
    }


def of(cluster: Cluster, whole: Occupancy, user: User) -> dict[str, Any]:
    """The parts of the page that follow its nodes, queues, jobs and events."""
    views = figures.views_of(queues.of_cluster(cluster), whole)
    return {
        **_capacity(cluster, whole),
        "queues": sorted(views, key=lambda view: -(view.use.running + view.use.waiting))[:_MOST_QUEUES],
        "queue_count": len(views),
        **_jobs(cluster, views, user),
        "events": list(_events(cluster)),
    }


def _capacity(cluster: Cluster, whole: Occupancy) -> dict[str, Any]:
    """What its nodes have. Made once for all readers, since few of thousands of nodes change between two requests."""
    key = _capacity, cluster.pk, get_language()
    found: dict[str, Any] | None = whole.derived.get(key)
    if found is None:
        nodes = [view for view in figures.nodes(whole) if view.node.cluster_id == cluster.pk]
        found = whole.derived[key] = _capacity_of(nodes)
    return found


def _capacity_of(nodes: list[NodeView]) -> dict[str, Any]:
    ready, whole = [view for view in nodes if view.node.is_ready and not view.node.is_cordoned], figures.capacity(nodes)
    return {
        "node_count": len(nodes),
        "ready_count": len(ready),
        "bars": whole.bars,
        "free": whole.free,
        "slots": whole.slots,
        "remarks": [view.node for view in nodes if view.node.message][:_MOST_REMARKS],
    }


def _jobs(cluster: Cluster, views: Iterable[QueueView], user: User) -> dict[str, Any]:
    """The oldest pending and the newest running jobs, in one table, and how many there are."""
    known = jobs.visible_to(user).filter(cluster=cluster)
    pending = known.filter(phase=JobPhase.PENDING).order_by("submitted_at", "id")[:_MOST_JOBS]
    running = known.filter(phase=JobPhase.RUNNING)[:_MOST_JOBS]
    return {
        "rows": job_rows.rows([*jobs.listed(pending), *jobs.listed(running)]),
        "columns": columns.short(),
        "running": sum(view.use.running for view in views),
        "waiting": sum(view.use.waiting for view in views),
    }


def _events(cluster: Cluster) -> Iterable[ClusterEvent]:
    found = event_log.about(f"cluster:{cluster.pk}").exclude(kind__in=_UNREMARKABLE).order_by("-id")[:_MOST_EVENTS]
    phrase = str(NOUNS["cluster"]).format(name=cluster.name)
    for event in found:
        yield ClusterEvent(event, sentence(event, phrase).text, _state(event))


def _state(event: LoggedEvent) -> str:
    facts = event.payload
    if event.kind == "ClusterHealthChanged":
        return "done" if facts.get("reachable") else "failed"
    if event.kind == "NodeChanged":
        return "neutral" if facts.get("ready") and facts.get("present", True) else "waiting"
    return "neutral"
