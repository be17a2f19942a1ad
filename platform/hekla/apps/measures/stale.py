"""Hours whose sums no longer agree with the facts. Only these are computed again."""

from collections.abc import Collection, Mapping
from datetime import datetime

from hekla.apps.measures.levels import HOUR, MEASURED, floor, hours
from hekla.apps.measures.models import MeasuredCluster, StaleHour

StaleTime = tuple[datetime, datetime | None]
"""A time; its end None: all that follows."""


def mark_unpriced(begin: datetime, *, now: datetime) -> None:
    """Mark the hours from `begin` on, which have no costs yet: they need not wait for further changes."""
    oldest = floor(now, HOUR) - MEASURED
    rows = [
        StaleHour(cluster_id=cluster, at=at, since=at)
        for cluster, until in MeasuredCluster.objects.values_list("pk", "until")
        if until is not None
        for at in hours(max(begin, oldest), until)
    ]
    StaleHour.objects.bulk_create(rows, batch_size=2000, ignore_conflicts=True)


def mark(spans: Mapping[int, Collection[StaleTime]], *, now: datetime) -> None:
    """Mark the hours of these times, by cluster, as stale, as far as there are sums.

    Hours whose use is not stored any more are left out.
    """
    oldest = floor(now, HOUR) - MEASURED
    measured = MeasuredCluster.objects.filter(pk__in=spans.keys())
    found = {
        (cluster, at)
        for cluster, until in measured.values_list("pk", "until")
        if until is not None
        for begin, end in spans[cluster]
        for at in hours(max(begin, oldest), until if end is None else min(end, until))
    }
    rows = [StaleHour(cluster_id=cluster, at=at, since=now) for cluster, at in sorted(found)]
    StaleHour.objects.bulk_create(rows, batch_size=2000, ignore_conflicts=True)
