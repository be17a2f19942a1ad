"""Hours whose sums no longer agree with the facts. Only these are computed again."""

from datetime import datetime

from hekla.apps.measures.levels import HOUR, KEEP_HOURS, floor, hours
from hekla.apps.measures.models import MeasuredCluster, StaleHour


def mark(cluster_id: int, begin: datetime, end: datetime | None, *, now: datetime) -> None:
    """Mark the hours between these times as stale, as far as there are sums. `end` None: all later ones.

    Hours that are too old to have sums are left out.
    """
    until = MeasuredCluster.objects.filter(pk=cluster_id).values_list("until", flat=True).first()
    if until is None:
        return
    begin = max(begin, floor(now, HOUR) - KEEP_HOURS)
    end = until if end is None else min(end, until)
    found = [StaleHour(cluster_id=cluster_id, at=at, since=now) for at in hours(begin, end)]
    StaleHour.objects.bulk_create(found, batch_size=2000, ignore_conflicts=True)
