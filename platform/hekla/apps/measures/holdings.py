"""Who held resources: facts about pods, derived from the rows of their jobs.

Deriving them again has no other result.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from math import ceil
from typing import NamedTuple

from django.db.models import QuerySet

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.measures.capacities import MOST_GPUS
from hekla.apps.measures.levels import from_ms, to_ms
from hekla.apps.measures.models import GpuHolding
from hekla.domain.card_resources import card_counts
from hekla.domain.gpu_time import GpuClass, PodHolding, changed_since
from hekla.domain.phases import JobPhase, PodPhase
from hekla.domain.resources import Resources

FAR = 2**60
"""The end of a holding that goes on, in milliseconds since 1970."""
_FIELDS = ("job_id", "task", "index", "attempt", "version", "phase", "node", "stopping", "evicted")
_TIMES = ("bound_at", "started_at", "finished_at")
_ENDED_BADLY = frozenset({PodPhase.FAILED.value, PodPhase.LOST.value})
_MIB = 2**20


class PodRequest(NamedTuple):
    """What each pod of a task requests: GPUs of one resource and cores in thousandths, memory in MiB."""

    resource: str
    gpus: int
    cpu: int
    memory: int


_Requests = Mapping[str, Sequence[PodRequest]]
"""By task."""


def of_jobs(job_ids: Collection[int]) -> list[GpuHolding]:
    """The holdings of these jobs as rows that are not saved."""
    held = {job: _requests(job) for job in Job.objects.filter(pk__in=job_ids)}
    if not held:
        return []
    pods: dict[int, list[Pod]] = defaultdict(list)
    for pod in Pod.objects.filter(job__in=held).only("id", *_FIELDS, *_TIMES).order_by("id"):
        pods[pod.job_id].append(pod)
    stopped = _stopped([job for job in held if any(_may_have_failed(pod) for pod in pods[job.pk])])
    return [row for job, some in held.items() for row in _of_job(job, some, pods[job.pk], stopped)]


def _requests(job: Job) -> dict[str, list[PodRequest]]:
    return {task.name: requests_of(task.request) for task in spec_of(job).tasks}


def requests_of(request: Resources) -> list[PodRequest]:
    """What a pod with this request holds: one for each resource of GPUs, or one without."""
    cards = sorted(card_counts(request).items())
    gpus = [(name, min(round(1000 * count), MOST_GPUS)) for name, count in cards if count > 0] or [("", 0)]
    cpu, memory = min(ceil(request.amount("cpu")), MOST_GPUS), min(ceil(request.amount("memory") / _MIB), MOST_GPUS)
    return [
        PodRequest(resource, amount, *((0, 0) if place else (cpu, memory)))
        for place, (resource, amount) in enumerate(gpus)
    ]


def _may_have_failed(pod: Pod) -> bool:
    return pod.phase in _ENDED_BADLY and pod.stopping and not pod.evicted


_Stopped = Collection[tuple[str, str, int, int]]
"""Pods that were asked to stop while they ran: subject, task, index, attempt."""


def _stopped(jobs: Sequence[Job]) -> _Stopped:
    if not jobs:
        return set()
    found = LoggedEvent.objects.filter(subject__in=[f"job:{job.uid}" for job in jobs], kind="PodStopRequested")
    rows = found.values_list("subject", "payload")
    return {(subject, one["task"], one["index"], one["attempt"]) for subject, one in rows}


def _of_job(job: Job, held: _Requests, pods: Sequence[Pod], stopped: _Stopped) -> Iterator[GpuHolding]:
    runs_since = _runs_since(job, pods)
    evicted = {pod.version for pod in pods if pod.evicted}
    newest: dict[tuple[str, int], int] = defaultdict(int)
    for pod in pods:
        newest[pod.task, pod.index] = max(newest[pod.task, pod.index], pod.attempt)
    for pod in pods:
        if pod.bound_at is None:
            continue
        bound = pod.bound_at
        is_repeated = pod.version < job.version or pod.attempt < newest[pod.task, pod.index]
        is_stopped = (f"job:{job.uid}", pod.task, pod.index, pod.attempt) in stopped
        outcome = _outcome(job, pod, evicted=evicted, is_repeated=is_repeated, is_stopped=is_stopped)
        for amounts in held.get(pod.task, ()):
            yield _row(job, pod, bound, amounts, (runs_since.get(pod.version), outcome))


def _runs_since(job: Job, pods: Sequence[Pod]) -> dict[int, datetime]:
    """When each version of the gang had as many started pods as it needs; a version that had not is left out.

    Tasks that wait for others start later, so a gang with such tasks waits for none.
    """
    spec, starts = spec_of(job), defaultdict[int, list[datetime]](list)
    for pod in pods:
        if pod.started_at is not None:
            starts[pod.version].append(pod.started_at)
    least = 1 if spec.has_dependencies else max(spec.gang_minimum, 1)
    return {version: sorted(times)[least - 1] for version, times in starts.items() if len(times) >= least}


def _outcome(job: Job, pod: Pod, *, evicted: Collection[int], is_repeated: bool, is_stopped: bool) -> GpuClass | None:
    if pod.evicted or (pod.version < job.version and pod.version in evicted):
        return GpuClass.PREEMPTED
    if is_repeated:
        return GpuClass.RETRIED
    has_failed = pod.phase in _ENDED_BADLY and not is_stopped
    return GpuClass.FAILED if has_failed or job.phase == JobPhase.FAILED else None


def _row(
    job: Job, pod: Pod, bound: datetime, held: PodRequest, facts: tuple[datetime | None, GpuClass | None]
) -> GpuHolding:
    """`facts`: since when the gang runs, and why the work was lost."""
    runs_since, outcome = facts
    end = None if pod.finished_at is None else max(pod.finished_at, bound)  # clocks differ
    ready = None
    if runs_since is not None and pod.started_at is not None:
        ready = max(runs_since, pod.started_at, bound)
    return GpuHolding(
        pod_id=pod.pk,
        resource=held.resource,
        cluster_id=job.cluster_id,
        job_id=job.pk,
        queue_id=job.queue_id,
        tenant_id=job.tenant_id,
        owner_id=job.owner_id,
        kind=job.kind,
        node=pod.node,
        gpus=held.gpus,
        cpu=held.cpu,
        memory=held.memory,
        bound_at=bound,
        ready_at=None if ready is not None and end is not None and ready >= end else ready,
        finished_at=end,
        outcome=outcome or "",
    )


def overlapping(rows: QuerySet[GpuHolding], begin: datetime, end: datetime) -> QuerySet[GpuHolding]:
    """Those of this time. The condition is that of the index which a migration adds."""
    overlaps = "tstzrange(bound_at, finished_at) && tstzrange(%s, %s)"
    return rows.extra(where=[overlaps], params=[begin, end])  # noqa: S610  (a text of our own)


def as_holding(row: GpuHolding, key: int = 0, *, measured: int = 0, idle: int = 0) -> PodHolding:
    """The row as an input of `gpu_time.divide`."""
    return PodHolding(
        key=key,
        gpus=row.gpus,
        bound=to_ms(row.bound_at),
        ready=None if row.ready_at is None else to_ms(row.ready_at),
        end=FAR if row.finished_at is None else to_ms(row.finished_at),
        outcome=GpuClass(row.outcome) if row.outcome else None,
        measured=measured,
        idle=idle,
    )


def change_between(old: GpuHolding | None, new: GpuHolding) -> tuple[datetime, datetime | None] | None:
    """The time whose sums differ between both; None: they do not. Its end None: it goes on."""
    if old is not None and _keys(old) != _keys(new):
        since: int | None = min(to_ms(old.bound_at), to_ms(new.bound_at))
    else:
        since = changed_since(as_holding(old) if old else None, as_holding(new))
    if since is None:
        return None
    ends = [one.finished_at for one in (old, new) if one is not None]
    return from_ms(since), None if None in ends else max(end for end in ends if end is not None)


def _keys(row: GpuHolding) -> Iterable[object]:
    return (row.cluster_id, row.node, row.queue_id, row.tenant_id, row.owner_id, row.kind, row.cpu, row.memory)
