"""Records the decisions of the engine, all of them before any is applied to the cluster.

A gang's binds are one transaction: after a crash either all are recorded, and are applied again (without effect where
that was done), or none is. Each write checks the epoch of the lease. A change made while the engine decided (for
example, a person aborted the job) wins over the decision.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hekla.apps.clusters import leases
from hekla.apps.event_log.services import CONTROLLER, unit_of_work
from hekla.apps.jobs import job_rows
from hekla.apps.jobs.facts import job_facts, spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services.cards import CardAssignment
from hekla.apps.jobs.services.telling import tell
from hekla.apps.jobs.services.transitions import advance, evict, set_gang_phase
from hekla.apps.rows import save_all
from hekla.domain import events
from hekla.domain.cards import may_request_cards
from hekla.domain.lifecycle import Stimulus, resolve
from hekla.domain.phases import GangPhase, PodPhase
from hekla.domain.policies import LifecycleAction
from hekla.domain.policies import LifecycleEvent as PolicyEvent
from hekla.domain.resources import Resources

_SHUFFLE = "shuffle"
"""The action whose evictions wait for an interval (`Lease.last_shuffle_at`)."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a job waits: the reasons as data, and one sentence for the log."""

    reasons: tuple[dict[str, Any], ...]
    text: str

    def kind(self) -> list[tuple[str, str, str]]:
        """The reasons without their numbers: two waits of equal kind have the same reason."""
        return [(str(r["cause"]), str(r["plugin"]), str(r["code"])) for r in self.reasons]


@dataclass(frozen=True, slots=True)
class EvictionReason:
    """Why a pod is evicted: by which action and plugins, for which job (row id; None: for no particular job).

    `shares`: how the eviction changes them.
    """

    action: str
    for_job: int | None = None
    plugins: tuple[str, ...] = ()
    shares: tuple[events.EvictionShares, ...] = ()


@dataclass(frozen=True, slots=True)
class JobDecision:
    """The engine's decisions about one job, based on this version and revision.

    `binds`: pod row id → node; `annotations`: pod row id → those of its bind, if any; `evictions`: pod row id → reason.
    """

    job_id: int
    version: int
    revision: int = 1
    gang_phase: GangPhase | None = None
    binds: Mapping[int, str] = field(default_factory=dict)
    annotations: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    evictions: Mapping[int, EvictionReason] = field(default_factory=dict)
    waiting: Waiting | None = None


def commit(cluster_id: int, epoch: int, decisions: Sequence[JobDecision], *, now: datetime) -> int:
    """Record the decisions about these jobs. Returns how many jobs changed. Raises LeaseLost."""
    if not decisions:
        return 0
    with unit_of_work():
        leases.assert_held(cluster_id, epoch)
        ids = [decision.job_id for decision in decisions]
        wanting = {one.for_job for d in decisions for one in d.evictions.values() if one.for_job is not None}
        jobs = job_rows.locked_in_order(cluster_id, ids)
        touched = [pod for decision in decisions for pod in (*decision.binds, *decision.evictions)]
        pods = job_rows.pods(touched)
        gainers = Job.objects.filter(cluster=cluster_id).in_bulk(wanting)
        found = [d for d in decisions if d.job_id in jobs]
        cards = CardAssignment(cluster_id, _nodes_with_requests(found, jobs, pods))
        changed = [d for d in found if _commit_one(jobs[d.job_id], d, pods, gainers, cards, now)]
        if any(why.action == _SHUFFLE for d in changed for why in d.evictions.values()):
            leases.record_shuffle(cluster_id, now=now)
        return len(changed)


def _nodes_with_requests(
    decisions: Sequence[JobDecision], jobs: Mapping[int, Job], pods: Mapping[int, Pod]
) -> set[str]:
    """The nodes of pods that may request cards."""
    return {
        node
        for decision in decisions
        if jobs[decision.job_id].revision == decision.revision
        for pod, node in decision.binds.items()
        if pod in pods and may_request_cards(_request(jobs[decision.job_id], pods[pod]))
    }


def _request(job: Job, pod: Pod) -> Resources:
    return spec_of(job).task(pod.task).request


def _commit_one(
    job: Job,
    decision: JobDecision,
    pods: Mapping[int, Pod],
    gainers: Mapping[int, Job],
    cards: CardAssignment,
    now: datetime,
) -> bool:
    is_stale = (job.version, job.revision) != (decision.version, decision.revision)
    if job.is_final or is_stale or job.deleted_at is not None:
        return False
    changed = False
    if decision.gang_phase is not None:
        changed = set_gang_phase(job, decision.gang_phase, actor=CONTROLLER, now=now)
    binds = [(pods[pod], node) for pod, node in decision.binds.items() if pod in pods]
    changed |= _bind(job, binds, decision.annotations, cards, now)
    for pod, why in decision.evictions.items():
        if pod in pods and (why.for_job is None or why.for_job in gainers):  # else that job moved to another cluster
            event = _eviction(job, pods[pod], why, gainers.get(why.for_job or 0))
            changed |= evict(job, pods[pod], event, actor=CONTROLLER, now=now)
    explained = write_waiting(job, decision.waiting, now)
    if changed or explained:
        save_all([job], ("gang_phase", "waiting"))
    if changed and decision.gang_phase is GangPhase.UNKNOWN and decision.waiting:
        _react_to_unknown(job, now)
    return changed


def _react_to_unknown(job: Job, now: datetime) -> None:
    """Apply the job's policy if a part of the gang runs and the rest cannot be scheduled (event Unknown)."""
    action = resolve(job_facts(job), Stimulus(event=PolicyEvent.UNKNOWN))
    if action is not LifecycleAction.SYNC_JOB:
        advance(job, job_rows.pods_of(job), action, actor=CONTROLLER, now=now)


def _bind(
    job: Job,
    binds: list[tuple[Pod, str]],
    annotations: Mapping[int, Mapping[str, str]],
    cards: CardAssignment,
    now: datetime,
) -> bool:
    """Record all of a job's binds of one cycle, or none if one of its pods cannot be bound any more."""
    if not binds or any(pod.phase != PodPhase.PENDING or pod.stopping for pod, _ in binds):
        return False
    for pod, node in binds:
        pod.phase, pod.node, pod.bound_at = PodPhase.BOUND, node, now
        if pod.pk in annotations or may_request_cards(_request(job, pod)):
            cards.assign(pod, _request(job, pod), annotations.get(pod.pk, {}), now=now)
        event = events.PodBound(task=pod.task, index=pod.index, attempt=pod.attempt, node=node)
        tell(job, event, actor=CONTROLLER, now=now)
    with_cards = [pod for pod, _ in binds if pod.cards or pod.annotations]
    save_all([pod for pod, _ in binds], ("phase", "node", "bound_at"))
    save_all(with_cards, ("annotations", "cards"))
    return True


def _eviction(job: Job, pod: Pod, why: EvictionReason, gainer: Job | None) -> events.PodEvicted:
    """The event. It does not name a job of another tenant."""
    return events.PodEvicted(
        task=pod.task,
        index=pod.index,
        attempt=pod.attempt,
        action=why.action,
        node=pod.node,
        for_job=str(gainer.uid) if gainer else "",
        for_name=gainer.name if gainer and gainer.tenant_id == job.tenant_id else "",
        plugins=why.plugins,
        shares=why.shares,
    )


def write_waiting(job: Job, waiting: Waiting | None, now: datetime) -> bool:
    """Set the newest numbers on the row (not saved yet), and log only a new reason. Returns whether any changed."""
    fresh = list(waiting.reasons) if waiting else []
    if job.waiting == fresh:
        return False
    old = Waiting(tuple(job.waiting), "")
    job.waiting = fresh
    if waiting and waiting.kind() != old.kind():
        tell(job, events.JobUnschedulable(reasons=waiting.reasons, text=waiting.text), actor=CONTROLLER, now=now)
    return True
