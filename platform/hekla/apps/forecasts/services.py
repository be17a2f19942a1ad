"""Stores forecasts. They are not events: nothing depends on them, and they can be lost without harm."""

from collections.abc import Mapping
from datetime import datetime

from hekla.apps.forecasts.models import Forecast
from hekla.apps.jobs.models import Job

Interval = tuple[datetime, datetime]


def keep(intervals: Mapping[int, Interval | None], *, now: datetime) -> None:
    """Store the forecasts of these jobs, by row id. A job's first forecast is never replaced."""
    alive = Job.objects.filter(pk__in=intervals).values_list("pk", flat=True)
    rows = [_row(pk, intervals[pk], now) for pk in alive]
    Forecast.objects.bulk_create(rows, batch_size=1000, ignore_conflicts=True)


def _row(job_id: int, interval: Interval | None, now: datetime) -> Forecast:
    earliest, latest = interval or (None, None)
    return Forecast(job_id=job_id, made_at=now, earliest_at=earliest, latest_at=latest)
