"""Questions about GPU time."""

from typing import Any

from django.db.models import QuerySet, Subquery
from django.db.models.functions import Coalesce

from hekla.apps import due_work
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.measures.following import KINDS
from hekla.apps.measures.models import GpuCapacity, MeasuresCursor, StaleHour


def roll_up_work() -> list[QuerySet[Any, Any]]:
    """Clusters with GPUs, hours to compute again, or news in the log (see `due_work`)."""
    last = Coalesce(Subquery(MeasuresCursor.objects.values("last")[:1]), 0)
    return [
        GpuCapacity.objects.filter(end_at=None),
        StaleHour.objects.filter(since__lte=due_work.present()),
        LoggedEvent.objects.filter(id__gt=last, kind__in=KINDS),
    ]
