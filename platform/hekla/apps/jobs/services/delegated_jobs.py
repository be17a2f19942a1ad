"""Following jobs that somebody else leads: rows and log become what was told of them, with the events of our own.

No policy is read here and nothing is decided but this: a job whose time is over has failed, since only we know its
deadline, and while a wish of a person is not answered the phase that says so stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from hekla.apps.clusters import leases
from hekla.apps.event_log.services import CONTROLLER, unit_of_work
from hekla.apps.jobs.facts import job_facts
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services.decisions import Waiting, write_waiting
from hekla.apps.jobs.services.observations import ORDER, POD_FIELDS, Sighting, take_down
from hekla.apps.jobs.services.telling import tell
from hekla.apps.jobs.services.transitions import enter_pod_phase, expire, request_stop, write
from hekla.apps.rows import save_all
from hekla.domain import events
from hekla.domain.addresses import Replica
from hekla.domain.lifecycle import FactMessage, PhaseChange, PodRef, delegated, fact
from hekla.domain.phases import GangPhase, JobPhase, PodPhase

_FIELDS = (*POD_FIELDS, "node", "bound_at")
ENDED_THERE, NOT_REQUESTED = "LeaderStops", "NotAsked"


@dataclass(frozen=True, slots=True)
class DelegatedJobState:
    """How the job stands with its leader. `waits`: why it does not start, in the leader's words.

    `refusal`: why the leader cannot be asked for what a person wishes; the wish is then withdrawn.
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
    """What was seen of one of its pods, and on which node. `is_stopping`: its end is wished there."""

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
    told: DelegatedJobState | None,
    seen: Sequence[DelegatedPodState],
    *,
    now: datetime,
) -> bool:
    """Take down what is new. `told`: None where there is no such job any more; `seen`: all pods that there are.

    Returns whether anything was. Raises LeaseLost.
    """
    with unit_of_work():
        leases.assert_held(cluster_id, epoch)
        job = Job.objects.select_for_update().get(pk=job_id)
        pods = list(job.pods.order_by("task", "index", "attempt"))
        changed = _follow_pods(job, pods, {one.ref: one for one in seen}, now)
        if job_facts(job).is_out_of_time(now):
            return expire(job, pods, actor=CONTROLLER, now=now)
        return (told is not None and _follow_job(job, pods, told, now)) or changed


# The job


def _follow_job(job: Job, pods: list[Pod], told: DelegatedJobState, now: datetime) -> bool:
    outcome = delegated.outcome_of(job_facts(job))
    if told.refusal and delegated.is_request(job.reason) and not job.is_final:
        outcome = delegated.outcome_of(job_facts(job), (PhaseChange(told.phase, NOT_REQUESTED, told.refusal),))
    elif delegated.follows(JobPhase(job.phase), job.reason, told.phase, restarted=told.restarts > job.retry_count):
        outcome = delegated.outcome_of(job_facts(job), _steps(job, pods, told))
        outcome = replace(outcome, retry_count=max(job.retry_count, told.restarts))
    gang_phase = GangPhase.COMPLETED if job.is_final and job.phase != JobPhase.ABORTED else told.gang_phase
    changed = write(job, pods, replace(outcome, gang_phase=gang_phase), actor=CONTROLLER, now=now)
    if write_waiting(job, _waiting(job, told), now):
        job.save(update_fields=["waiting"])
        changed = True
    return changed


def _steps(job: Job, pods: Sequence[Pod], told: DelegatedJobState) -> tuple[PhaseChange, ...]:
    way = delegated.phases_between(
        job_facts(job), told.phase, has_started=job.started_at is not None, restarts=told.restarts
    )
    reason, message = told.reason or told.phase.capitalize(), told.message or _summary(job, pods, told.phase)
    return tuple(PhaseChange(phase, reason if phase is told.phase else phase.capitalize(), message) for phase in way)


def _summary(job: Job, pods: Sequence[Pod], phase: JobPhase) -> str:
    """What can be said in its leader's stead: Volcano mostly says nothing."""
    count = {PodPhase.SUCCEEDED: 0, PodPhase.RUNNING: 0}
    for pod in {(pod.task, pod.index): pod for pod in pods}.values():
        if pod.phase in count:
            count[PodPhase(pod.phase)] += 1
    if phase is JobPhase.RUNNING:
        return FactMessage(fact("pods_run", running=count[PodPhase.RUNNING], replicas=job.replicas))
    if phase in (JobPhase.COMPLETED, JobPhase.FAILED):
        return FactMessage(fact("pods_succeeded", succeeded=count[PodPhase.SUCCEEDED], replicas=job.replicas))
    return FactMessage(fact("can_be_resumed")) if phase is JobPhase.ABORTED else ""


def _waiting(job: Job, told: DelegatedJobState) -> Waiting | None:
    if not told.waits or job.phase != JobPhase.PENDING:
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
        "text": told.waits,
    }
    return Waiting((reason,), told.waits)


# Its pods


def _follow_pods(job: Job, pods: list[Pod], seen: Mapping[PodRef, DelegatedPodState], now: datetime) -> bool:
    """Ends first: a replica has one place at a time."""
    gone = [pod for pod in pods if not pod.is_final and _ref(pod) not in seen]
    for pod in gone:
        _end(job, pod, now)
    known = {_ref(pod) for pod in pods}
    fresh = tuple(sorted(ref for ref in seen if ref not in known))
    made = replace(delegated.outcome_of(job_facts(job)), create=fresh)
    write(job, pods, made, address_of=_unnamed, actor=CONTROLLER, now=now)
    moved = [pod for pod in sorted(pods, key=_ref) if (one := seen.get(_ref(pod))) and _move(job, pod, one, now)]
    save_all([*gone, *moved], _FIELDS)
    return bool(gone or fresh or moved)


def _unnamed(_replica: Replica) -> str:
    """Volcano's plugins tell the pods of a job how to find one another."""
    return ""


def _ref(pod: Pod) -> PodRef:
    return PodRef(pod.task, pod.index, pod.attempt)


def _end(job: Job, pod: Pod, now: datetime) -> None:
    """It is gone, and nobody saw how it ended."""
    phase, reason, message = PodPhase.LOST, "Vanished", "The cluster does not know this pod any more."
    if pod.stopping:
        phase, reason, message = PodPhase.FAILED, "Stopped", pod.stop_reason
    enter_pod_phase(job, pod, phase, reason=reason, message=message, actor=CONTROLLER, now=now)


def _move(job: Job, pod: Pod, seen: DelegatedPodState, now: datetime) -> bool:
    """To where it was seen. Returns whether that is another place than before."""
    if pod.is_final:
        return False
    if seen.is_stopping:
        reason = job.reason if delegated.is_request(job.reason) else ENDED_THERE
        request_stop(job, pod, reason, actor=CONTROLLER, now=now)
    before = pod.phase
    if seen.node and pod.phase == PodPhase.PENDING:
        _bind(job, pod, seen.node, now)
    sighting = _as_stopped(pod, seen.sighting)
    if ORDER[sighting.phase] > ORDER[PodPhase(pod.phase)]:
        take_down(job, pod, sighting)
    return pod.phase != before


def _bind(job: Job, pod: Pod, node: str, now: datetime) -> None:
    pod.phase, pod.node, pod.bound_at = PodPhase.BOUND, node, now
    event = events.PodBound(task=pod.task, index=pod.index, attempt=pod.attempt, node=node)
    tell(job, event, actor=CONTROLLER, now=now)


def _as_stopped(pod: Pod, sighting: Sighting) -> Sighting:
    """A pod whose end was wished has not failed by itself, and is not lost when it is gone."""
    if not pod.stopping or sighting.phase not in (PodPhase.FAILED, PodPhase.LOST):
        return sighting
    return replace(sighting, phase=PodPhase.FAILED, reason="Stopped", message=pod.stop_reason)
