"""Follow jobs that are delegated to another scheduler: rows and log become what its cluster reports.

No policy applies here, and only three things are decided. A job past its deadline has failed, since only Hekla knows
the deadline. The first replica of a task completes the job where the task's `success_policy` says so, since Volcano
counts all replicas. A phase that represents a request stays until the other scheduler has acted on it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from hekla.apps.clusters import leases
from hekla.apps.event_log.services import CONTROLLER, unit_of_work
from hekla.apps.jobs import job_rows
from hekla.apps.jobs.facts import all_pod_facts, job_facts
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services.decisions import Waiting, write_waiting
from hekla.apps.jobs.services.observations import ORDER, POD_FIELDS, Sighting, record_observation
from hekla.apps.jobs.services.telling import tell
from hekla.apps.jobs.services.transitions import enter_pod_phase, expire, request_stop, write
from hekla.apps.rows import save_all
from hekla.domain import events
from hekla.domain.addresses import Replica
from hekla.domain.lifecycle import FactMessage, PhaseChange, PodRef, delegated, fact
from hekla.domain.phases import GangPhase, JobPhase, PodPhase
from hekla.domain.policies import LifecycleAction

_FIELDS = (*POD_FIELDS, "node", "bound_at")
ENDED_THERE, NOT_REQUESTED = "LeaderStops", "NotAsked"


@dataclass(frozen=True, slots=True)
class DelegatedJobState:
    """The job's state in its scheduler. `waits`: why it does not start, in the scheduler's words.

    `refusal`: why a person's request cannot be passed on; the request is then withdrawn.
    """

    phase: JobPhase
    gang_phase: GangPhase
    restarts: int = 0
    reason: str = ""
    message: str = ""
    waits: str = ""
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class DelegatedPodState:
    """An observed pod and its node. `is_stopping`: its deletion is requested there."""

    sighting: Sighting
    node: str = ""
    is_stopping: bool = False

    @property
    def ref(self) -> PodRef:
        return PodRef(self.sighting.task, self.sighting.index, self.sighting.attempt)


def follow(
    cluster_id: int,
    epoch: int,
    job_id: int,
    state: DelegatedJobState | None,
    pod_states: Sequence[DelegatedPodState],
    *,
    now: datetime,
) -> bool:
    """Record what is new. `state`: None if the cluster has no such job any more; `pod_states`: of all pods that exist.

    Returns whether anything changed. Raises LeaseLost.
    """
    with unit_of_work():
        leases.assert_held(cluster_id, epoch)
        job = job_rows.locked(job_id)
        pods = job_rows.pods_of(job)
        changed = _follow_pods(job, pods, {one.ref: one for one in pod_states}, now)
        if job_facts(job).is_out_of_time(now):
            return expire(job, pods, actor=CONTROLLER, now=now)
        changed |= state is not None and _follow_job(job, pods, state, now)
        return _complete(job, pods, now) or changed


# The job


def _follow_job(job: Job, pods: list[Pod], state: DelegatedJobState, now: datetime) -> bool:
    outcome = delegated.outcome_of(job_facts(job))
    if state.refusal and delegated.is_request(job.reason) and not job.is_final:
        outcome = delegated.outcome_of(job_facts(job), (PhaseChange(state.phase, NOT_REQUESTED, state.refusal),))
    elif delegated.follows(JobPhase(job.phase), job.reason, state.phase, restarted=state.restarts > job.retry_count):
        outcome = delegated.outcome_of(job_facts(job), _steps(job, pods, state))
        outcome = replace(outcome, retry_count=max(job.retry_count, state.restarts))
    gang_phase = GangPhase.COMPLETED if job.is_final and job.phase != JobPhase.ABORTED else state.gang_phase
    changed = write(job, pods, replace(outcome, gang_phase=gang_phase), actor=CONTROLLER, now=now)
    if write_waiting(job, _waiting(job, state), now):
        job.save(update_fields=["waiting"])
        changed = True
    return changed


def _complete(job: Job, pods: list[Pod], now: datetime) -> bool:
    """Request the completion of the job if the first replica of a task completed it. Returns whether it did."""
    facts = job_facts(job)
    if not delegated.is_complete(facts, all_pod_facts(pods)):
        return False
    return write(job, pods, delegated.request(facts, LifecycleAction.COMPLETE_JOB), actor=CONTROLLER, now=now)


def _steps(job: Job, pods: Sequence[Pod], state: DelegatedJobState) -> tuple[PhaseChange, ...]:
    phases = delegated.phases_between(
        job_facts(job), state.phase, has_started=job.started_at is not None, restarts=state.restarts
    )
    reason, message = state.reason or state.phase.capitalize(), state.message or _summary(job, pods, state.phase)
    return tuple(
        PhaseChange(phase, reason if phase is state.phase else phase.capitalize(), message) for phase in phases
    )


def _summary(job: Job, pods: Sequence[Pod], phase: JobPhase) -> str:
    """A message in place of Volcano's, which is usually empty."""
    count = {PodPhase.SUCCEEDED: 0, PodPhase.RUNNING: 0}
    for pod in {(pod.task, pod.index): pod for pod in pods}.values():
        if pod.phase in count:
            count[PodPhase(pod.phase)] += 1
    if phase is JobPhase.RUNNING:
        return FactMessage(fact("pods_run", running=count[PodPhase.RUNNING], replicas=job.replicas))
    if phase in (JobPhase.COMPLETED, JobPhase.FAILED):
        return FactMessage(fact("pods_succeeded", succeeded=count[PodPhase.SUCCEEDED], replicas=job.replicas))
    return FactMessage(fact("can_be_resumed")) if phase is JobPhase.ABORTED else ""


def _waiting(job: Job, state: DelegatedJobState) -> Waiting | None:
    if not state.waits or job.phase != JobPhase.PENDING:
        return None
    nothing: dict[str, str] = {}
    reason = {
        "cause": "policy",
        "action": "volcano",
        "plugin": "volcano",
        "code": "leader_says",
        "need": nothing,
        "have": nothing,
        "tasks": 0,
        "nodes": nothing,
        "ever": True,
        "text": state.waits,
    }
    return Waiting((reason,), state.waits)


# Its pods


def _follow_pods(job: Job, pods: list[Pod], states: Mapping[PodRef, DelegatedPodState], now: datetime) -> bool:
    """Record the pods' observed states. Pods that are gone end first: a replica has one place at a time."""
    gone = [pod for pod in pods if not pod.is_final and _ref(pod) not in states]
    for pod in gone:
        _end(job, pod, now)
    known = {_ref(pod) for pod in pods}
    fresh = tuple(sorted(ref for ref in states if ref not in known))
    made = replace(delegated.outcome_of(job_facts(job)), create=fresh)
    write(job, pods, made, address_of=_unnamed, actor=CONTROLLER, now=now)
    changed = [pod for pod in sorted(pods, key=_ref) if (one := states.get(_ref(pod))) and _move(job, pod, one, now)]
    save_all([*gone, *changed], _FIELDS)
    return bool(gone or fresh or changed)


def _unnamed(_replica: Replica) -> str:
    """No address: Volcano's plugins tell the pods of a job how to reach each other."""
    return ""


def _ref(pod: Pod) -> PodRef:
    return PodRef(pod.task, pod.index, pod.attempt)


def _end(job: Job, pod: Pod, now: datetime) -> None:
    """End a pod that is gone without a known result."""
    phase, reason, message = PodPhase.LOST, "Vanished", "The cluster does not know this pod any more."
    if pod.stopping:
        phase, reason, message = PodPhase.FAILED, "Stopped", pod.stop_reason
    enter_pod_phase(job, pod, phase, reason=reason, message=message, actor=CONTROLLER, now=now)


def _move(job: Job, pod: Pod, state: DelegatedPodState, now: datetime) -> bool:
    """Move a pod to its observed state. Returns whether its phase changed."""
    if pod.is_final:
        return False
    if state.is_stopping:
        reason = job.reason if delegated.is_request(job.reason) else ENDED_THERE
        request_stop(job, pod, reason, actor=CONTROLLER, now=now)
    before = pod.phase
    if state.node and pod.phase == PodPhase.PENDING:
        _bind(job, pod, state.node, now)
    sighting = _as_stopped(pod, state.sighting)
    if ORDER[sighting.phase] > ORDER[PodPhase(pod.phase)]:
        record_observation(job, pod, sighting)
    return pod.phase != before


def _bind(job: Job, pod: Pod, node: str, now: datetime) -> None:
    pod.phase, pod.node, pod.bound_at = PodPhase.BOUND, node, now
    event = events.PodBound(task=pod.task, index=pod.index, attempt=pod.attempt, node=node)
    tell(job, event, actor=CONTROLLER, now=now)


def _as_stopped(pod: Pod, sighting: Sighting) -> Sighting:
    """The observation; a failed or lost pod counts as stopped if its stop was requested."""
    if not pod.stopping or sighting.phase not in (PodPhase.FAILED, PodPhase.LOST):
        return sighting
    return replace(sighting, phase=PodPhase.FAILED, reason="Stopped", message=pod.stop_reason)
