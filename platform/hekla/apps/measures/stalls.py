"""Running pods that make no progress, found in what was read of their logs and measured of their GPUs.

The newest pods count, up to `MOST_PODS`; a report says if there are more. Simulated clusters are left out, since their
pods print nothing and use nothing by themselves.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.job_metrics.models import EventMetrics, MetricLog
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.measures import ledger
from hekla.apps.measures.ledger import PodGpus
from hekla.domain.phases import PodPhase
from hekla.domain.stalls import LogGrowth, MetricProgress, PodActivity, Stall, find_stalls

MOST_PODS = 5_000
MOST_ROWS = 200
USUAL_MINUTES, LEAST_MINUTES, MOST_MINUTES = 15, 5, 24 * 60
_LOG = ("pod_id", "job_id", "pod__task", "pod__started_at", "progress", "known_at")
_GROWTH = ("grew_at", "growths", "longest_pause")


@dataclass(frozen=True, slots=True)
class StalledPod:
    """A pod with its signs, the oldest first."""

    pod: Pod
    stalls: Sequence[Stall]

    @property
    def since(self) -> datetime:
        """Since when about there are signs."""
        return self.stalls[0].since


@dataclass(frozen=True, slots=True)
class StallReport:
    """Pods with signs, the oldest first. `judged`: how many pods were looked at; `is_cut`: there are more."""

    rows: Sequence[StalledPod]
    judged: int
    is_cut: bool


def stalled(user: User, *, minutes: int = USUAL_MINUTES, cluster: str = "", now: datetime) -> StallReport:
    """The running pods with signs, among those that the person can see. `cluster`: by name. Raises NotFound."""
    every = [clusters.get(cluster)] if cluster else [one for one in clusters.all_clusters() if not one.is_simulated]
    visible = jobs.visible_to(user).filter(cluster__in=[one.pk for one in every])
    return _report(visible.order_by().values("pk"), minutes, now)


def stalled_of(job: Job, *, now: datetime) -> StallReport:
    """The running pods of a job with signs. The caller has checked that the person may see it."""
    if job.cluster.is_simulated:
        return StallReport((), 0, is_cut=False)
    return _report(Job.objects.filter(pk=job.pk).values("pk"), USUAL_MINUTES, now)


def _report(of_jobs: QuerySet[Any, Any], minutes: int, now: datetime) -> StallReport:
    activities = _activities(of_jobs, now)
    by_pod: dict[int, list[Stall]] = {}
    for stall in find_stalls(activities[:MOST_PODS], quiet=timedelta(minutes=minutes), now=now):
        by_pod.setdefault(stall.pod, []).append(stall)
    first = list(by_pod)[:MOST_ROWS]
    pods = {pod.pk: pod for pod in _pods(first)}
    rows = [StalledPod(pods[pk], by_pod[pk]) for pk in first if pk in pods]
    is_cut = len(activities) > MOST_PODS or len(by_pod) > MOST_ROWS
    return StallReport(rows, min(len(activities), MOST_PODS), is_cut)


def _pods(keys: Iterable[int]) -> QuerySet[Pod]:
    found = Pod.objects.filter(pk__in=keys)
    return found.select_related("job__owner", "job__tenant", "job__cluster", "job__queue").defer("job__spec")


def _activities(of_jobs: QuerySet[Any, Any], now: datetime) -> list[PodActivity]:
    """What is known of the newest running pods of these jobs, at most one more than `MOST_PODS`."""
    running = {"job__in": of_jobs, "pod__phase": PodPhase.RUNNING, "pod__stopping": False, "is_complete": False}
    logs = MetricLog.objects.filter(**running, pod__started_at__isnull=False).order_by("-pod_id")
    rows = list(logs.values_list(*_LOG, *_GROWTH)[: MOST_PODS + 1])
    keys = [row[0] for row in rows]
    files = EventMetrics.objects.filter(pod__in=keys, is_complete=False).exclude(progress={})
    of_files: dict[int, tuple[dict[str, Any], datetime | None]] = {
        pod: (document, known_at) for pod, document, known_at in files.values_list("pod_id", "progress", "known_at")
    }
    held = ledger.gpus_of(keys, now=now) if keys else {}
    found = []
    for pod, job, task, started_at, document, known_at, grew_at, growths, pause in rows:
        progress, read_at = MetricProgress.stored(document), known_at
        other, other_at = of_files.get(pod, ({}, None))
        if other and (progress is None or other["seconds"] > progress.seconds):
            progress, read_at = MetricProgress.stored(other), other_at
        log = LogGrowth(grew_at, growths, pause, known_at) if grew_at and known_at else None
        found.append(PodActivity(pod, job, task, started_at, read_at, progress, log, _unused(held.get(pod))))
    return found


def _unused(held: PodGpus | None) -> datetime | None:
    return held.unused_since if held else None
