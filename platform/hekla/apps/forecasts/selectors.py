"""The accuracy of forecasts."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, F, Q

from hekla.apps.forecasts.models import Forecast
from hekla.lib import clock

ENOUGH = 5
"""The minimum of cases for an accuracy."""
_NEWEST = 100


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The numbers of forecasts (`cases`), and of those that held: the job started between the forecast times."""

    held: int
    cases: int

    @property
    def per_cent(self) -> int:
        """The percentage of forecasts that held."""
        return round(100 * self.held / self.cases)


def accuracy(queue_id: int) -> Accuracy | None:
    """The accuracy of a queue's newest forecasts with a known outcome, at most 100; None if they are fewer than ENOUGH.

    A job that is still waiting after its latest time counts; one that ended or was deleted without a start, or was
    changed, does not.
    """
    is_late = Q(job__started_at=None, job__finished_at=None, job__deleted_at=None, latest_at__lt=clock.now())
    known = Forecast.objects.filter(Q(job__started_at__isnull=False) | is_late, job__queue_id=queue_id, job__revision=1)
    forecasts = known.filter(latest_at__isnull=False).order_by("-made_at")
    cases = list(forecasts.values_list("earliest_at", "latest_at", "job__started_at")[:_NEWEST])
    held = sum(bool(begin and end and at and begin <= at <= end) for begin, end, at in cases)
    return Accuracy(held, len(cases)) if len(cases) >= ENOUGH else None


@dataclass(frozen=True, slots=True)
class PeriodAccuracy:
    """The forecasts of the jobs that were submitted in a period and waited.

    `unknown`: no start was predicted. `cases`: with a range and a known outcome; `held`: they started within it;
    `early`, `late`: they started before it, or after it (or wait still).
    """

    unknown: int
    cases: int
    held: int
    early: int
    late: int


def accuracy_between(cluster_id: int, since: datetime, until: datetime) -> PeriodAccuracy:
    """The accuracy of a cluster's forecasts in a period. Counts jobs as `accuracy` does."""
    is_late = Q(job__started_at=None, job__finished_at=None, job__deleted_at=None, latest_at__lt=clock.now())
    period = Q(job__cluster_id=cluster_id, job__submitted_at__gte=since, job__submitted_at__lt=until, job__revision=1)
    found = Forecast.objects.filter(period)
    ranges = found.filter(latest_at__isnull=False).filter(Q(job__started_at__isnull=False) | is_late)
    is_early, is_over = Q(job__started_at__lt=F("earliest_at")), Q(job__started_at__gt=F("latest_at")) | is_late
    counts = ranges.aggregate(
        cases=Count("pk"), early=Count("pk", filter=is_early), late=Count("pk", filter=is_over & ~is_early)
    )
    held = counts["cases"] - counts["early"] - counts["late"]
    return PeriodAccuracy(found.filter(latest_at=None).count(), held=held, **counts)


def known(job_ids: Collection[int]) -> set[int]:
    """Those of the jobs (row ids) that have a forecast."""
    return set(Forecast.objects.filter(job_id__in=job_ids).values_list("job_id", flat=True))
