"""What happened to jobs: facts derived from their rows and events. Deriving them again has no other result."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.measures.models import GpuCapacity, JobMoment
from hekla.domain.card_resources import card_counts
from hekla.domain.job_measures import FailureCause, MomentKind, WaitReason, bucket_of, cause_of_pod, size_of
from hekla.domain.lifecycle import RETRIED
from hekla.domain.phases import GangPhase, JobPhase, PodPhase

_COURSE = ("JobUnschedulable", "JobPhaseChanged", "GangPhaseChanged", "PodEvicted")
"""An index of the log has these kinds by subject."""
_MOST_OF_JOB = 5000
"""Events. The oldest of a job count: they tell how it waited."""
_ENDED_BADLY = (PodPhase.FAILED.value, PodPhase.LOST.value)
_STOPS = frozenset({JobPhase.ABORTING, JobPhase.ABORTED, JobPhase.TERMINATING, JobPhase.TERMINATED})
_MILLISECOND = timedelta(milliseconds=1)
_NAME_LENGTH = 253
_REASONS = frozenset(WaitReason)


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a job failed, and where, if a pod did."""

    cause: FailureCause
    node: str = ""
    image: str = ""
    exit_code: int | None = None


def of_jobs(job_ids: Collection[int]) -> list[JobMoment]:
    """The moments of these jobs as rows that are not saved, in any order."""
    jobs = {job.pk: job for job in Job.objects.filter(pk__in=job_ids)}
    courses, models = _courses(jobs.values()), _models(jobs.values())
    ended = [job for job in jobs.values() if job.is_final and job.phase != JobPhase.COMPLETED]
    pods = _bad_pods(ended)
    return [
        row
        for job in jobs.values()
        for row in _of_job(job, courses[f"job:{job.uid}"], pods[job.pk], models.get(job.pk, ""))
    ]


def _courses(jobs: Collection[Job]) -> dict[str, list[LoggedEvent]]:
    """The events of each job, in order of their time. Repeated ones make no difference."""
    found: dict[str, list[LoggedEvent]] = defaultdict(list)
    subjects = [f"job:{job.uid}" for job in jobs]
    events = LoggedEvent.objects.filter(subject__in=subjects, kind__in=_COURSE).order_by("subject", "id")
    for event in events.only("subject", "kind", "at", "actor_id", "payload").iterator(chunk_size=2000):
        if len(found[event.subject]) < _MOST_OF_JOB:
            found[event.subject].append(event)
    for course in found.values():
        course.sort(key=lambda event: event.at)
    return found


def _models(jobs: Collection[Job]) -> dict[int, str]:
    """The model of the GPUs that each job held first; jobs that have held none are left out."""
    resources = {job.pk: found for job in jobs if (found := _resources(job))}
    pods = Pod.objects.filter(job__in=resources, bound_at__isnull=False).exclude(node="")
    first: dict[int, tuple[int, str, str, datetime]] = {}
    clusters = {job.pk: job.cluster_id for job in jobs}
    for job, task, node, bound in pods.order_by("bound_at", "pk").values_list("job", "task", "node", "bound_at"):
        if job not in first and bound is not None and (resource := resources[job].get(task)):
            first[job] = clusters[job], node, resource, bound
    spans: dict[tuple[int, str, str], list[GpuCapacity]] = defaultdict(list)
    nodes = {node for _cluster, node, _resource, _bound in first.values()}
    for span in GpuCapacity.objects.filter(node__in=nodes).order_by("begin_at", "pk") if nodes else ():
        spans[span.cluster_id, span.node, span.resource].append(span)
    return {
        job: _model(bound, spans[cluster, node, resource], resource)
        for job, (cluster, node, resource, bound) in first.items()
    }


def _resources(job: Job) -> dict[str, str]:
    """The first resource of GPUs that each task requests; other tasks are left out."""
    counts = {task.name: card_counts(task.request) for task in spec_of(job).tasks}
    return {task: min(found) for task, found in counts.items() if found}


def _model(bound: datetime, spans: Sequence[GpuCapacity], resource: str) -> str:
    """The model at the time of the bind, else the first one that is known, else the resource."""
    known = [span for span in spans if span.begin_at <= bound] or spans[:1]
    return known[-1].model if known else resource[:_NAME_LENGTH]


def _bad_pods(jobs: Collection[Job]) -> dict[int, list[Pod]]:
    """The pods of the last version of each job that failed or were evicted, in the order of their ends."""
    found: dict[int, list[Pod]] = defaultdict(list)
    versions = {job.pk: job.version for job in jobs}
    rows = Pod.objects.filter(job__in=versions, phase__in=_ENDED_BADLY).defer("annotations", "cards")
    for pod in rows.order_by("finished_at", "pk") if versions else ():
        if pod.version == versions[pod.job_id]:
            found[pod.job_id].append(pod)
    return found


def _of_job(job: Job, course: Sequence[LoggedEvent], pods: Sequence[Pod], model: str) -> Iterator[JobMoment]:
    shared = {
        "job_id": job.pk,
        "cluster_id": job.cluster_id,
        "queue_id": job.queue_id,
        "tenant_id": job.tenant_id,
        "owner_id": job.owner_id,
        "kind": job.kind,
        "size": size_of(_gpus(job)),
        "model": model,
    }

    def moment(what: MomentKind, at: datetime, number: int = 0, part: str = "", **facts: Any) -> JobMoment:  # noqa: ANN401
        return JobMoment(what=what.value, at=at, number=number, part=part, **shared, **facts)

    yield moment(MomentKind.SUBMITTED, job.submitted_at)
    if job.started_at is not None:
        wait = _milliseconds(job.submitted_at, job.started_at)
        yield moment(MomentKind.STARTED, job.started_at, part=str(bucket_of(wait)), milliseconds=wait)
        for number, (reason, part) in enumerate(sorted(_waits(job, job.started_at, course).items())):
            yield moment(MomentKind.WAITED, job.started_at, number, reason.value, milliseconds=part)
    for kind, times in ((MomentKind.PREEMPTED, _preemptions(course)), (MomentKind.RETRIED, _retries(course))):
        for number, at in enumerate(times):
            yield moment(kind, at, number)
    if job.finished_at is not None:
        if job.started_at is None:
            wait = _milliseconds(job.submitted_at, job.finished_at)
            yield moment(MomentKind.UNSTARTED, job.finished_at, milliseconds=wait)
        kind, part, place = _end(job, course, pods)
        yield moment(kind, job.finished_at, part=part, **place)


def _gpus(job: Job) -> float:
    return sum(task.replicas * sum(card_counts(task.request).values()) for task in spec_of(job).tasks)


def _milliseconds(since: datetime, until: datetime) -> int:
    return max((until - since) // _MILLISECOND, 0)  # clocks differ


def _waits(job: Job, started: datetime, course: Sequence[LoggedEvent]) -> Mapping[WaitReason, int]:
    """How many milliseconds of the wait before the start each reason took. Together they are the whole wait."""
    found: dict[WaitReason, int] = defaultdict(int)
    reason, since = WaitReason.UNKNOWN, 0
    whole = _milliseconds(job.submitted_at, started)
    for event in course:
        at = min(max(_milliseconds(job.submitted_at, event.at), since), whole)
        found[reason] += at - since
        reason, since = _reason_after(reason, event), at
    found[reason] += whole - since
    return {reason: part for reason, part in found.items() if part}


def _reason_after(reason: WaitReason, event: LoggedEvent) -> WaitReason:
    """What a job waits for after this event."""
    if event.kind == "JobUnschedulable":
        reasons = event.payload["reasons"]
        cause = str(reasons[0].get("cause", "")) if reasons else ""
        return WaitReason(cause) if cause in _REASONS else WaitReason.UNKNOWN
    if event.kind == "GangPhaseChanged":
        return WaitReason.STARTING if event.payload["new"] == GangPhase.RUNNING else WaitReason.UNKNOWN
    return reason


def _preemptions(course: Sequence[LoggedEvent]) -> list[datetime]:
    """When pods were evicted; several at one time count once."""
    return sorted({event.at for event in course if event.kind == "PodEvicted"})


def _retries(course: Sequence[LoggedEvent]) -> list[datetime]:
    """When the job restarted by policy."""
    changes = (event for event in course if event.kind == "JobPhaseChanged")
    return sorted({one.at for one in changes if one.payload["new"] == JobPhase.RESTARTING and _is_retry(one)})


def _is_retry(event: LoggedEvent) -> bool:
    return bool(event.payload.get("reason") == RETRIED)


def _end(job: Job, course: Sequence[LoggedEvent], pods: Sequence[Pod]) -> tuple[MomentKind, str, dict[str, Any]]:
    """How the job ended; of a failure its cause, and where."""
    if job.phase == JobPhase.COMPLETED:
        return MomentKind.COMPLETED, "", {}
    failure = _failure(job, course, pods)
    if failure is None:
        return MomentKind.STOPPED, "", {}
    place = {"node": failure.node, "image": failure.image, "exit_code": failure.exit_code}
    return MomentKind.FAILED, failure.cause.value, place


def _failure(job: Job, course: Sequence[LoggedEvent], pods: Sequence[Pod]) -> _Failure | None:
    """Why the job failed; None if it was stopped. A policy that aborts it after a failure or an eviction counts too."""
    if job.phase == JobPhase.FAILED:
        return _Failure(FailureCause.TIMEOUT) if job.reason == "DeadlineExceeded" else _of_pods(job, pods)
    stop = next((event for event in reversed(course) if _is_stop(event)), None)
    if stop is None or stop.actor_id is not None:
        return None
    if any(fact.get("code") == "pod_failed" for fact in stop.payload.get("message_facts", ())):
        return _of_pods(job, pods)
    evicted = [pod for pod in pods if pod.evicted]
    is_last = any(event.kind == "PodEvicted" and event.at <= stop.at for event in course)
    is_answer = evicted and is_last and not _idled(job)
    return _of_pods(job, evicted) if is_answer else None


def _idled(job: Job) -> bool:
    return LoggedEvent.objects.filter(subject=f"job:{job.uid}", kind="JobIdleAborted").exists()


def _is_stop(event: LoggedEvent) -> bool:
    return event.kind == "JobPhaseChanged" and event.payload["new"] in _STOPS and event.payload["old"] not in _STOPS


def _of_pods(job: Job, pods: Sequence[Pod]) -> _Failure:
    """The first pod that failed by itself, else one that was evicted. Pods stopped on request are no cause."""
    guilty = next((pod for pod in pods if not pod.evicted and pod.reason != "Stopped"), None)
    if guilty is None and (guilty := next((pod for pod in pods if pod.evicted), None)) is None:
        return _Failure(FailureCause.OTHER)
    is_lost = guilty.phase == PodPhase.LOST
    cause = cause_of_pod(guilty.reason, guilty.exit_code, is_lost=is_lost)
    image = next((task.image for task in spec_of(job).tasks if task.name == guilty.task), "")
    return _Failure(FailureCause.PREEMPTED if guilty.evicted else cause, guilty.node, image, guilty.exit_code)
