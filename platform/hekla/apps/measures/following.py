"""Follows the event log, and keeps the facts about GPUs up to date. Says which hours no longer agree with them."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime
from uuid import UUID

from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs.models import Job
from hekla.apps.measures import capacities, holdings, stale
from hekla.apps.measures.capacities import CLUSTER_REMOVED, NODE_CHANGED
from hekla.apps.measures.models import GpuHolding, MeasuredCluster, MeasuresCursor

OF_JOBS = ("PodCreated", "PodBound", "PodPhaseChanged", "PodEvicted", "JobPhaseChanged", "JobChanged")
OF_NODES = (NODE_CHANGED, CLUSTER_REMOVED)
OF_PRICES = ("PriceListCreated",)
_AT_ONCE, _JOBS_AT_ONCE = 2000, 200
_Spans = defaultdict[int, set[stale.StaleTime]]
"""By cluster, the times whose sums differ now. They are marked together: each pod has others."""
_FIELDS = (
    *("cluster_id", "job_id", "queue_id", "tenant_id", "owner_id", "kind"),
    *("node", "gpus", "cpu", "memory", "bound_at", "ready_at", "finished_at", "outcome"),
)


def read_part(cursor: MeasuresCursor, *, now: datetime) -> bool:
    """Read the next part of the log. Returns whether that was all. The row of the cursor must be locked."""
    last = event_log.last_number()
    found = event_log.of_kinds_after(cursor.last, (*OF_JOBS, *OF_NODES, *OF_PRICES), limit=_AT_ONCE)
    is_all = len(found) < _AT_ONCE
    spans: _Spans = defaultdict(set)
    for event in found:
        if event.kind in OF_NODES:
            _follow_node(event, spans)
        elif event.kind in OF_PRICES:
            stale.mark_unpriced(datetime.fromisoformat(event.payload["begin"]), now=now)
    jobs = {UUID(event.subject.removeprefix("job:")) for event in found if event.kind in OF_JOBS}
    ids = list(Job.objects.filter(uid__in=jobs).order_by("pk").values_list("pk", flat=True)) if jobs else []
    for begin in range(0, len(ids), _JOBS_AT_ONCE):  # all pods of these jobs are in memory together
        _refresh(ids[begin : begin + _JOBS_AT_ONCE], spans)
    stale.mark(spans, now=now)
    cursor.last = max(last, cursor.last) if is_all else found[-1].pk
    cursor.save(update_fields=["last"])
    return is_all


def _follow_node(event: LoggedEvent, spans: _Spans) -> None:
    since = capacities.follow(event)
    if since is not None:
        cluster = capacities.cluster_of(event)
        MeasuredCluster.objects.update_or_create(cluster_id=cluster, defaults={"has_gpus": True})
        spans[cluster].add((since, None))


def refresh(job_ids: Iterable[int], *, now: datetime) -> None:
    """Derive the holdings of these jobs again, and mark the hours that differ."""
    spans: _Spans = defaultdict(set)
    _refresh(job_ids, spans)
    stale.mark(spans, now=now)


def _refresh(job_ids: Iterable[int], spans: _Spans) -> None:
    """Derive the holdings of these jobs again, and add the times that differ."""
    ids = list(job_ids)
    stored = {(row.pod_id, row.resource): row for row in GpuHolding.objects.filter(job_id__in=ids)}
    fresh = {(row.pod_id, row.resource): row for row in holdings.of_jobs(ids)}
    changed = [row for key, row in fresh.items() if _differs(stored.get(key), row)]
    gone = [row for key, row in stored.items() if key not in fresh]
    for row in gone:
        row.delete()
    GpuHolding.objects.bulk_create(
        changed,
        batch_size=1000,
        update_conflicts=True,
        unique_fields=["pod_id", "resource"],
        update_fields=_FIELDS,
    )
    known = set(MeasuredCluster.objects.values_list("pk", flat=True))
    news = {row.cluster_id for row in changed} - known
    MeasuredCluster.objects.bulk_create(MeasuredCluster(cluster_id=pk, has_gpus=False) for pk in sorted(news))
    _add_spans([(stored.get((row.pod_id, row.resource)), row) for row in changed], gone, spans)


def _differs(old: GpuHolding | None, new: GpuHolding) -> bool:
    return old is None or any(getattr(old, name) != getattr(new, name) for name in _FIELDS)


def _add_spans(
    changed: Iterable[tuple[GpuHolding | None, GpuHolding]], gone: Collection[GpuHolding], spans: _Spans
) -> None:
    for old, new in changed:
        if between := holdings.change_between(old, new):
            for cluster in {new.cluster_id, *([old.cluster_id] if old else [])}:
                spans[cluster].add(between)
    for row in gone:
        spans[row.cluster_id].add((row.bound_at, row.finished_at))
