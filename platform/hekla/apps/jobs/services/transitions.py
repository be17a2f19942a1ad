"""Writes the outcomes of the lifecycle: phases, pods to stop, pods to create."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from hekla.apps.event_log.services import Actor
from hekla.apps.jobs.facts import all_pod_facts, job_facts, replica_of, replicas, reserved_slots, spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services import freezing
from hekla.apps.jobs.services.telling import tell
from hekla.apps.rows import save_all
from hekla.domain import events, lifecycle
from hekla.domain.addresses import Replica
from hekla.domain.lifecycle import ActionTarget, JobOutcome, PodRef, facts_in
from hekla.domain.phases import GangPhase, JobPhase, PodPhase
from hekla.domain.policies import LifecycleAction

AddressOf = Callable[[Replica], str]
SCALED_DOWN = "ScaledDown"
_MOST_FACTS = 64
_JOB_FIELDS = (
    "phase",
    "gang_phase",
    "version",
    "retry_count",
    "reason",
    "message",
    "message_facts",
    "started_at",
    "deadline_at",
    "restart_at",
    "finished_at",
    "expires_at",
    "waiting",
)
_POD_FIELDS = (
    "stopping",
    "stop_reason",
    "evicted",
    "phase",
    "reason",
    "message",
    "exit_code",
    "started_at",
    "finished_at",
)


def advance(
    job: Job,
    pods: list[Pod],
    action: LifecycleAction,
    *,
    target: ActionTarget | None = None,
    by_person: bool = False,
    address_of: AddressOf | None = None,
    actor: Actor,
    now: datetime,
) -> bool:
    """Apply one action to the job and write the outcome. Returns whether anything changed.

    Call inside a unit of work, with the job's row locked. Without `address_of` no pods are created: the controller,
    which knows the backend, creates them when it reconciles next. New pods are added to `pods`.
    """
    outcome = lifecycle.advance(job_facts(job), all_pod_facts(pods), action, target, by_person=by_person, now=now)
    return _write(job, pods, outcome, action, address_of, actor, now)


def expire(job: Job, pods: list[Pod], *, actor: Actor, now: datetime) -> bool:
    """End a job past its deadline. Call like `advance`."""
    outcome = lifecycle.expire(job_facts(job), all_pod_facts(pods), now)
    return _write(job, pods, outcome, LifecycleAction.SYNC_JOB, None, actor, now)


def write(
    job: Job, pods: list[Pod], outcome: JobOutcome, *, address_of: AddressOf | None = None, actor: Actor, now: datetime
) -> bool:
    """Write an outcome that was decided elsewhere, with the same events. Call like `advance`."""
    return _write(job, pods, outcome, LifecycleAction.SYNC_JOB, address_of, actor, now)


def _write(
    job: Job,
    pods: list[Pod],
    outcome: JobOutcome,
    action: LifecycleAction,
    address_of: AddressOf | None,
    actor: Actor,
    now: datetime,
) -> bool:
    changed = _write_job(job, outcome, actor, now)
    if changed:
        freezing.freeze(job, pods, now=now)
    by_ref = {(pod.task, pod.index, pod.attempt): pod for pod in pods}
    for ref in outcome.stop:
        reason = SCALED_DOWN if ref in outcome.surplus else outcome.reason or action
        _stop(job, by_ref[ref.task, ref.index, ref.attempt], reason, actor, now)
    if address_of and outcome.create:
        _create_pods(job, pods, outcome.create, address_of, actor, now)
    return changed or bool(outcome.stop) or bool(address_of and outcome.create)


def _write_job(job: Job, outcome: JobOutcome, actor: Actor, now: datetime) -> bool:
    before = (job.phase, job.gang_phase, job.version, job.retry_count, job.restart_at, job.reason, job.message)
    job.version, job.retry_count, job.restart_at = outcome.version, outcome.retry_count, outcome.restart_at
    for step in outcome.steps:
        _enter(job, step.phase, step.reason, step.message, actor, now)
    if outcome.reason or outcome.message:
        job.reason, job.message, job.message_facts = (
            outcome.reason[:64],
            outcome.message,
            _bounded_facts(outcome.message),
        )
    set_gang_phase(job, outcome.gang_phase, actor=actor, now=now)
    if (job.phase, job.gang_phase, job.version, job.retry_count, job.restart_at, job.reason, job.message) == before:
        return False
    save_all([job], _JOB_FIELDS)
    return True


def _enter(job: Job, phase: JobPhase, reason: str, message: str, actor: Actor, now: datetime) -> None:
    event = events.JobPhaseChanged(
        old=JobPhase(job.phase),
        new=phase,
        reason=reason,
        message=message,
        message_facts=tuple(_bounded_facts(message)),
        version=job.version,
        retry_count=job.retry_count,
    )
    job.phase, job.reason, job.message, job.message_facts = phase, reason[:64], message, _bounded_facts(message)
    if phase is JobPhase.RUNNING and job.started_at is None:
        job.started_at = now
    job.deadline_at = _deadline(job, now)
    job.finished_at = now if phase.is_final else None
    job.expires_at = _expiry(job, now) if phase.is_final else None
    if phase.is_final:
        job.waiting = []
    tell(job, event, actor=actor, now=now)


def _deadline(job: Job, now: datetime) -> datetime | None:
    """The deadline: set when the job starts, kept over restarts, and set anew when an aborted job is resumed."""
    seconds = spec_of(job).active_deadline_seconds
    if job.phase in (JobPhase.ABORTING, JobPhase.ABORTED):
        return None
    begins = seconds is not None and job.deadline_at is None and job.phase == JobPhase.RUNNING
    return now + timedelta(seconds=seconds or 0) if begins else job.deadline_at


def _bounded_facts(message: str) -> list[dict[str, Any]]:
    """The facts of a message, limited to what a row or an event may hold."""
    return facts_in(message)[:_MOST_FACTS]


def _expiry(job: Job, now: datetime) -> datetime | None:
    seconds = spec_of(job).ttl_seconds_after_finished
    return None if seconds is None or job.phase == JobPhase.ABORTED else now + timedelta(seconds=seconds)


def set_gang_phase(job: Job, phase: GangPhase, *, actor: Actor, now: datetime) -> bool:
    """Set the gang phase (not saved yet). Returns whether it changed."""
    if job.gang_phase == phase:
        return False
    tell(job, events.GangPhaseChanged(old=GangPhase(job.gang_phase), new=phase), actor=actor, now=now)
    job.gang_phase = phase
    return True


def _stop(job: Job, pod: Pod, reason: str, actor: Actor, now: datetime) -> None:
    """Request the stop of a pod; one that has ended already no longer counts for its job."""
    if pod.is_final and not pod.stopping:
        pod.stopping, pod.stop_reason = True, reason[:200]
        save_all([pod], ("stopping", "stop_reason"))
    else:
        request_stop(job, pod, reason, actor=actor, now=now)


def evict(job: Job, pod: Pod, event: events.PodEvicted, *, actor: Actor, now: datetime) -> bool:
    """Request the stop of a pod because its resources are needed. Returns False if it is stopping or has ended."""
    if pod.stopping or pod.is_final:
        return False
    pod.evicted = True
    _request_end(job, pod, event.action, event, actor, now)
    return True


def request_stop(job: Job, pod: Pod, reason: str, *, actor: Actor, now: datetime) -> None:
    """Request the stop of a pod, unless it is stopping or has ended."""
    if not (pod.stopping or pod.is_final):
        event = events.PodStopRequested(task=pod.task, index=pod.index, attempt=pod.attempt, reason=reason)
        _request_end(job, pod, reason, event, actor, now)


def _request_end(job: Job, pod: Pod, reason: str, event: events.Event, actor: Actor, now: datetime) -> None:
    """Mark a pod as stopping. One without a node has nothing to stop, so it ends at once."""
    pod.stopping, pod.stop_reason = True, reason[:200]
    gainer = [f"job:{event.for_job}"] if isinstance(event, events.PodEvicted) and event.for_job else []
    tell(job, event, actor=actor, now=now, topics=gainer)
    if pod.phase == PodPhase.PENDING:
        enter_pod_phase(job, pod, PodPhase.FAILED, reason="Stopped", message=reason, actor=actor, now=now)
    save_all([pod], _POD_FIELDS)


def enter_pod_phase(
    job: Job,
    pod: Pod,
    phase: PodPhase,
    *,
    reason: str = "",
    message: str = "",
    exit_code: int | None = None,
    actor: Actor,
    now: datetime,
) -> None:
    """Move a pod to a phase, with its event (not saved yet). The event cleans texts that a database refuses."""
    event = events.PodPhaseChanged(
        task=pod.task,
        index=pod.index,
        attempt=pod.attempt,
        old=PodPhase(pod.phase),
        new=phase,
        reason=reason[:64],
        message=message,
        exit_code=exit_code,
        node=pod.node,
    )
    pod.phase, pod.reason, pod.message, pod.exit_code = phase, event.reason, event.message, exit_code
    if phase is PodPhase.RUNNING and pod.started_at is None:
        pod.started_at = now
    if phase.is_final:
        pod.finished_at = now
    tell(job, event, actor=actor, now=now)


def _create_pods(
    job: Job, pods: list[Pod], refs: Sequence[PodRef], address_of: AddressOf, actor: Actor, now: datetime
) -> None:
    slots = _slots(job, pods, refs)
    rows = []
    for ref in refs:
        slot = slots[ref.task, ref.index]
        row = Pod(
            job=job,
            task=ref.task,
            index=ref.index,
            attempt=ref.attempt,
            version=job.version,
            slot=slot,
            address=address_of(replica_of(job, ref.task, ref.index, slot)),
            created_at=now,
        )
        rows.append(row)
        event = events.PodCreated(task=ref.task, index=ref.index, attempt=ref.attempt, address=row.address)
        tell(job, event, actor=actor, now=now)
    Pod.objects.bulk_create(rows, batch_size=1000)
    pods.extend(rows)


def _slots(job: Job, pods: Sequence[Pod], refs: Sequence[PodRef]) -> dict[tuple[str, int], int]:
    """The slots of these replicas and of earlier ones; if tasks wait for others, of all replicas of the job."""
    slots = reserved_slots(job) | {(pod.task, pod.index): pod.slot for pod in pods}
    in_stages = spec_of(job).has_dependencies
    wanted = replicas(job) if in_stages else [(ref.task, ref.index) for ref in refs]
    missing = [replica for replica in wanted if replica not in slots]
    slots |= dict(zip(missing, new_slots(len(missing)), strict=True))
    if in_stages and missing:
        job.reserved_slots = [slots[replica] for replica in wanted]
        save_all([job], ("reserved_slots",))
    return slots


def new_slots(count: int) -> list[int]:
    """This many slots that no replica ever had."""
    if not count:
        return []
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('jobs_slot') FROM generate_series(1, %s)", [count])
        return sorted(row[0] for row in cursor.fetchall())
