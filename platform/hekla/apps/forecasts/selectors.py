"""The accuracy of forecasts."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Q

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


def known(job_ids: Collection[int]) -> set[int]:
    """Those of the jobs (row ids) that have a forecast."""
    return set(Forecast.objects.filter(job_id__in=job_ids).values_list("job_id", flat=True))
