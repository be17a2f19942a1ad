"""Counts over all tenants, for the metrics."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import connection
from django.db.models import Case, CharField, Count, Exists, F, Min, OuterRef, Subquery, Value, When
from django.db.models.functions import Cast, Coalesce, Concat

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.selectors.replicas import placed
from hekla.domain.phases import FINAL_POD_PHASES, JobPhase

_WAITING = {"phase": JobPhase.PENDING, "deleted_at": None}
_FINAL_PODS = [phase.value for phase in FINAL_POD_PHASES]


def counts_by_queue() -> list[tuple[int, str, int]]:
    """(queue id, phase, number of jobs), without deleted jobs."""
    found = Job.objects.filter(deleted_at=None).order_by().values_list("queue_id", "phase")
    return list(found.annotate(count=Count("id")))


def living_pods_by_cluster() -> list[tuple[int, str, int]]:
    """(cluster id, phase, number of pods), without finished pods."""
    found = Pod.objects.exclude(phase__in=_FINAL_PODS).order_by().values_list("job__cluster_id", "phase")
    return list(found.annotate(count=Count("id")))


class PlacedPods(NamedTuple):
    """How many pods were on nodes in a step of time: at most, counted from its first change, and at its end."""

    at: datetime
    most: int
    last: int


def placed_pods_over_time(clusters: Collection[int], *, since: datetime, step: timedelta) -> list[PlacedPods]:
    """The number of pods on nodes of these clusters (row ids) in each step in which it changed.

    Exact: each attempt of a pod is a row with its own begin and end.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _OVER_TIME,
            {"clusters": [*clusters], "since": since, "step": f"{step.total_seconds()} seconds", "final": _FINAL_PODS},
        )
        return [PlacedPods(at, int(most), int(last)) for at, most, last in cursor.fetchall()]


_OVER_TIME = """
WITH lives AS (
    SELECT greatest(pod.bound_at, %(since)s) AS begins, pod.finished_at AS ends
    FROM jobs_pod AS pod JOIN jobs_job AS job ON job.id = pod.job_id
    WHERE pod.bound_at IS NOT NULL AND job.cluster_id = ANY(%(clusters)s::bigint[])
        AND (pod.finished_at > %(since)s OR (pod.finished_at IS NULL AND NOT pod.phase = ANY(%(final)s)))
), changes AS (
    SELECT begins AS at, 1 AS change FROM lives UNION ALL SELECT ends, -1 FROM lives WHERE ends IS NOT NULL
), counts AS (
    SELECT at, sum(sum(change)) OVER (ORDER BY at) AS count FROM changes GROUP BY at
)
SELECT date_bin(%(step)s::interval, at, %(since)s) AS bin, max(count), (array_agg(count ORDER BY at DESC))[1]
FROM counts GROUP BY bin ORDER BY bin
"""


def oldest_waits() -> dict[int, datetime]:
    """For each queue (by row id) the start of the oldest wait among its pending jobs that hold no resources.

    As in `waiting_since`; a job without a reason never was in another phase, so the log is not read for it.
    """
    waiting = Job.objects.filter(~Exists(placed(Pod.objects.filter(job=OuterRef("pk")))), **_WAITING)
    subject = Concat(Value("job:"), Cast(OuterRef("uid"), CharField()))
    changed = LoggedEvent.objects.filter(subject=subject, kind="JobPhaseChanged").order_by("-id").values("at")[:1]
    since = Case(
        When(reason="", then=F("submitted_at")),
        default=Coalesce(Subquery(changed), F("submitted_at")),
    )
    return dict(waiting.order_by().values_list("queue_id").annotate(oldest=Min(since)))
