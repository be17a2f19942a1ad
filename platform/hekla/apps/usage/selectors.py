"""Resource use of pods over time, and files of jobs. `apps.jobs` decides which pods and jobs a person may see."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Count, Max, Q, QuerySet, Sum
from django.db.models.functions import TruncMinute

from hekla.apps.jobs.models import Job, Pod
from hekla.apps.tenancy.models import Tenant
from hekla.apps.usage.levels import FINEST
from hekla.apps.usage.models import JobFolder, Sample

MOST_READ = 100_000
"""The approximate maximum of samples read for one chart: for a job with many pods, those of its last hours."""
GIB = 2**30
POINTS = 240
"""The approximate maximum of points in a line of a chart."""


@dataclass(frozen=True, slots=True)
class UsagePoint:
    """The use of one line of a chart (a replica, or a task with all its pods) around `at`; None: unknown."""

    line: str
    at: datetime
    cores: float | None
    memory_bytes: int
    gpus: float | None
    gpu_memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class TenantFiles:
    """The files of a tenant's jobs, as far as they were measured, in bytes. `is_complete`: everything was counted.

    `limit`: None without one.
    """

    size: int
    jobs: int
    is_complete: bool
    limit: int | None

    @property
    def is_full(self) -> bool:
        return self.limit is not None and self.size >= self.limit


def files_of(tenant: Tenant) -> TenantFiles:
    """The room that the files of a tenant take."""
    is_counted = Q(is_complete=True, measured_at__isnull=False)
    totals = {"size": Sum("size"), "jobs": Count("pk"), "complete": Count("pk", filter=is_counted)}
    found = JobFolder.objects.filter(tenant=tenant, job__cleaned_at=None).aggregate(**totals)
    limit = None if tenant.files_gib is None else tenant.files_gib * GIB
    return TenantFiles(found["size"] or 0, found["jobs"], found["complete"] == found["jobs"], limit)


def largest_folders(tenant: Tenant, most: int) -> QuerySet[JobFolder]:
    """The folders of the tenant's jobs that take most room, largest first."""
    found = JobFolder.objects.filter(tenant=tenant, measured_at__isnull=False, job__cleaned_at=None)
    found = found.order_by("-size", "pk")
    return found.select_related("job__owner", "job__cluster", "job__tenant").defer("job__spec")[:most]


def folder_of(job: Job) -> JobFolder | None:
    """The room that the files of a job take; None if they were not measured."""
    return JobFolder.objects.filter(job=job, measured_at__isnull=False).first()


@dataclass(frozen=True, slots=True)
class RecentUse:
    """The recent use of a pod in per cent of one core and of one GPU; None: not known."""

    cpu_percent: int | None
    gpu_percent: int | None


def recent(pods: Collection[int], *, since: datetime) -> dict[int, RecentUse]:
    """The use of these pods (primary keys) since then: of CPU the mean, of GPUs the highest. CPU needs two samples."""
    found: dict[int, list[tuple[datetime, int, int | None]]] = defaultdict(list)
    rows = Sample.objects.filter(pod__in=pods, at__gte=since, span_seconds=FINEST).order_by("pod_id", "at")
    for pod, at, cpu_ms, gpu in rows.values_list("pod_id", "at", "cpu_ms", "gpu_thousandths"):
        found[pod].append((at, cpu_ms, gpu))
    return {pod: RecentUse(_cpu_percent(points), _gpu_percent(points)) for pod, points in found.items()}


def gpu_minutes(pods: Collection[int], *, since: datetime) -> dict[tuple[int, datetime], int | None]:
    """The highest use of GPUs of these pods (primary keys) in each measured minute, in per cent of one; None: unknown.

    Samples older than a day cover more than a minute.
    """
    rows = Sample.objects.filter(pod__in=pods, at__gte=since).annotate(minute=TruncMinute("at", tzinfo=UTC)).order_by()
    found = rows.values("pod_id", "minute").annotate(most=Max("gpu_thousandths"))
    return {(row["pod_id"], row["minute"]): _percent(row["most"]) for row in found}


def recent_gpus(pods: Collection[int], *, since: datetime) -> dict[int, int | None]:
    """The highest use of GPUs of each of these pods since then, in per cent of one; None: unknown."""
    rows = Sample.objects.filter(pod__in=pods, at__gte=since, span_seconds=FINEST).order_by()
    found = rows.values("pod_id").annotate(most=Max("gpu_thousandths"))
    return {row["pod_id"]: _percent(row["most"]) for row in found}


def gpu_minute_masks(
    least: Mapping[int, int], *, begin: datetime, end: datetime, hour: datetime
) -> dict[int, tuple[int, int]]:
    """Of these pods (primary keys) the minutes whose GPU use is known, and the idle ones among them, as bits.

    `least`: by pod, the thousandths of a GPU from which on it is not idle. Bit n stands for the minute n of the `hour`
    in which both times lie. A coarse sample counts for all minutes of its span.
    """
    values: dict[str, Any] = {
        "pods": list(least),
        "least": list(least.values()),
        "begin": begin,
        "end": end,
        "hour": hour,
    }
    with connection.cursor() as cursor:
        cursor.execute(_MASKS, values)
        return {pod: (measured, idle or 0) for pod, measured, idle in cursor.fetchall()}


_MASKS = """
WITH wanted AS (
    SELECT * FROM unnest(%(pods)s::bigint[], %(least)s::bigint[]) AS asked (pod_id, least)
), spans AS (
    SELECT pod_id, least, greatest(span_seconds, 60) AS seconds, avg(gpu_thousandths) AS busy,
        date_bin(make_interval(secs => greatest(span_seconds, 60)), at, 'epoch'::timestamptz) AS since
    FROM usage_sample JOIN wanted USING (pod_id)
    WHERE span_seconds IN (10, 60, 600) AND at >= %(begin)s AND at < %(end)s AND gpu_thousandths IS NOT NULL
    GROUP BY pod_id, least, seconds, since
), masks AS (
    SELECT pod_id, busy < least AS idle,
        ((1::bigint << (seconds / 60)) - 1) << (extract(epoch FROM since - %(hour)s::timestamptz) / 60)::int AS mask
    FROM spans
)
SELECT pod_id, bit_or(mask), bit_or(mask) FILTER (WHERE idle) FROM masks GROUP BY pod_id
"""


def gpu_last_busy(least: Mapping[int, int]) -> dict[int, datetime | None]:
    """When these pods (primary keys) last used their GPUs, as far as it is stored; None: never.

    `least`: by pod, the thousandths of a GPU from which on that counts. Pods whose use was not measured are left out.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LAST_BUSY, {"pods": list(least), "least": list(least.values())})
        return dict(cursor.fetchall())


_LAST_BUSY = """
SELECT asked.pod_id, (
    SELECT max(newest.at) FROM (VALUES (10), (60), (600)) AS level (seconds) CROSS JOIN LATERAL (
        SELECT at FROM usage_sample
        WHERE pod_id = asked.pod_id AND span_seconds = level.seconds AND gpu_thousandths >= asked.least
        ORDER BY at DESC LIMIT 1
    ) AS newest
)
FROM unnest(%(pods)s::bigint[], %(least)s::bigint[]) AS asked (pod_id, least)
WHERE EXISTS (SELECT FROM usage_sample WHERE pod_id = asked.pod_id AND gpu_thousandths IS NOT NULL)
"""


def _percent(thousandths: int | None) -> int | None:
    return None if thousandths is None else round(thousandths / 10)


def _cpu_percent(points: Sequence[tuple[datetime, int, int | None]]) -> int | None:
    (begin, before, _gpu), (end, after, _gpu) = points[0], points[-1]
    seconds = (end - begin).total_seconds()
    return round(max(0, after - before) / 10 / seconds) if seconds > 0 else None


def _gpu_percent(points: Sequence[tuple[datetime, int, int | None]]) -> int | None:
    return _percent(max((gpu for _at, _cpu_ms, gpu in points if gpu is not None), default=None))


def samples(pod: Pod) -> QuerySet[Sample]:
    """All stored samples of one attempt, oldest first."""
    return Sample.objects.filter(pod=pod).order_by("at")


def course(pods: Sequence[Pod], *, by_task: bool, now: datetime) -> list[UsagePoint]:
    """The use of these pods over time: one line per replica with all its attempts, or one per task with their sum."""
    if not pods:
        return []
    since, span = _window(pods, now)
    lines = [pod.task if by_task else str(pod) for pod in pods]
    with connection.cursor() as cursor:
        cursor.execute(_COURSE, {"pods": [pod.pk for pod in pods], "lines": lines, "since": since, "span": span})
        return [UsagePoint(*row) for row in cursor.fetchall()]


def _window(pods: Sequence[Pod], now: datetime) -> tuple[datetime, int]:
    """The start of the chart, and the seconds per point."""
    until = max(pod.finished_at or now for pod in pods)
    since = min(pod.started_at or pod.created_at for pod in pods)
    since = max(since, until - timedelta(seconds=FINEST * MOST_READ // len(pods)))
    span = (until - since).total_seconds() / POINTS
    return since, max(FINEST, int(-(-span // FINEST) * FINEST))


_COURSE = """
WITH wanted AS (
    SELECT * FROM unnest(%(pods)s::bigint[], %(lines)s::text[]) AS asked (pod_id, line)
), steps AS (
    SELECT line, pod_id, at, memory_bytes, gpu_memory_bytes, gpu_thousandths,
        cpu_ms - lag(cpu_ms) OVER before AS used_ms, extract(epoch FROM at - lag(at) OVER before) AS seconds
    FROM usage_sample JOIN wanted USING (pod_id)
    WHERE at >= %(since)s
    WINDOW before AS (PARTITION BY pod_id ORDER BY at)
), pods AS (
    SELECT line, date_bin(make_interval(secs => %(span)s), at, 'epoch'::timestamptz) AS bin, max(at) AS at,
        greatest(sum(used_ms), 0) / nullif(sum(seconds) FILTER (WHERE used_ms IS NOT NULL), 0) / 1000.0 AS cores,
        avg(memory_bytes) AS memory, avg(gpu_thousandths) / 1000.0 AS gpus, avg(gpu_memory_bytes) AS gpu_memory
    FROM steps GROUP BY line, pod_id, bin
)
SELECT line, max(at), sum(cores)::float8, sum(memory)::bigint, sum(gpus)::float8, sum(gpu_memory)::bigint
FROM pods GROUP BY line, bin ORDER BY line, bin
"""
