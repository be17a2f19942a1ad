"""How well forecasts held."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Q

from hekla.apps.forecasts.models import Forecast
from hekla.lib import clock

ENOUGH = 5
"""From fewer cases nothing is said."""
_NEWEST = 100


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Of so many forecasts so many held: the job started within the time that was foretold."""

    held: int
    cases: int

    @property
    def per_cent(self) -> int:
        """Of all of them."""
        return round(100 * self.held / self.cases)


def accuracy(queue_id: int) -> Accuracy | None:
    """Of the newest forecasts for a queue whose outcome is known. None: they are too few.

    A job that still waits when its time is over counts too; one that was given up or changed meanwhile does not.
    """
    is_late = Q(job__started_at=None, job__finished_at=None, job__deleted_at=None, latest_at__lt=clock.now())
    known = Forecast.objects.filter(Q(job__started_at__isnull=False) | is_late, job__queue_id=queue_id, job__revision=1)
    forecasts = known.filter(latest_at__isnull=False).order_by("-made_at")
    cases = list(forecasts.values_list("earliest_at", "latest_at", "job__started_at")[:_NEWEST])
    held = sum(bool(begin and end and at and begin <= at <= end) for begin, end, at in cases)
    return Accuracy(held, len(cases)) if len(cases) >= ENOUGH else None


def known(job_ids: Collection[int]) -> set[int]:
    """Of which of these jobs (by row) something was foretold."""
    return set(Forecast.objects.filter(job_id__in=job_ids).values_list("job_id", flat=True))
