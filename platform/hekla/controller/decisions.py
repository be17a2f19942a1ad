"""Convert the engine's decisions to the decisions that the jobs app records."""

from collections import defaultdict
from collections.abc import Mapping

from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services.decisions import EvictionReason, JobDecision, Waiting
from hekla.domain import events
from hekla.domain.phases import GangPhase, PodPhase
from hekla.engine.decisions import Decisions, Eviction, PendingReason, ShareImpact, ShareShift
from hekla.scheduling.reasons import as_data, distinct
from hekla.scheduling.snapshot import Snapshot

_DIGITS = 4
"""Decimal places of shares in the event log."""


def by_job(snapshot: Snapshot, decisions: Decisions) -> list[JobDecision]:
    """One decision for each job with something to record."""
    binds: dict[str, dict[int, str]] = defaultdict(dict)
    annotations: dict[str, dict[int, Mapping[str, str]]] = defaultdict(dict)
    evictions: dict[str, dict[int, EvictionReason]] = defaultdict(dict)
    for bind in decisions.binds:
        binds[bind.job][int(bind.pod)] = bind.node
        if bind.annotations:
            annotations[bind.job][int(bind.pod)] = bind.annotations
    for eviction in decisions.evictions:
        evictions[eviction.job][int(eviction.pod)] = _yield(eviction)
    have_pods = {pods[0].job_id for pods in snapshot.pods_by_job if pods}
    found = []
    for uid, job in snapshot.jobs.items():
        phase, reasons = _new_phase(job, decisions.phases.get(uid)), decisions.reasons.get(uid, ())
        if phase is None and not reasons and not job.waiting and uid not in binds and uid not in evictions:
            continue  # nearly all jobs: nothing is new about them
        is_starting = decisions.phases.get(uid) is not GangPhase.PENDING and job.pk not in have_pods
        decision = JobDecision(
            job_id=job.pk,
            version=job.version,
            revision=job.revision,
            gang_phase=phase,
            binds=binds.get(uid, {}),
            annotations=annotations.get(uid, {}),
            evictions=evictions.get(uid, {}),
            # A job that was just admitted has no pending reason: its pods are created before the next round.
            waiting=None if is_starting else _waiting(reasons),
        )
        if _says_something(decision, job):
            found.append(decision)
    return found


def _yield(eviction: Eviction) -> EvictionReason:
    gainer = int(eviction.for_job) if eviction.for_job else None
    return EvictionReason(eviction.action, gainer, eviction.plugins, tuple(map(_shares, eviction.shares)))


def _shares(shares: ShareImpact) -> events.EvictionShares:
    taker = None if shares.taker is None else _shift(shares.taker)
    return events.EvictionShares(plugin=shares.plugin, of=shares.holder.value, giver=_shift(shares.giver), taker=taker)


def _shift(shift: ShareShift) -> events.ShareChange:
    return events.ShareChange(before=round(shift.before, _DIGITS), after=round(shift.after, _DIGITS))


def only_places(decision: JobDecision) -> bool:
    """Whether the decision admits the job or binds its pods, and evicts none."""
    is_let_in = decision.gang_phase is GangPhase.INQUEUE
    return bool(decision.binds or is_let_in) and not decision.evictions


def still_nominated(snapshot: Snapshot, decisions: Decisions, before: Mapping[str, str]) -> dict[str, str]:
    """Node by pod that waits for evicted pods there: new nominations, and earlier ones (`before`) still pending."""
    nominated = {**before, **decisions.nominated}
    if not nominated:
        return {}
    bound = {bind.pod for bind in decisions.binds}
    waiting = {uid for uid, pod in snapshot.pods.items() if pod.phase == PodPhase.PENDING} - bound
    return {uid: node for uid, node in nominated.items() if uid in waiting}


def _new_phase(job: Job, phase: GangPhase | None) -> GangPhase | None:
    return None if phase is None or phase == job.gang_phase else phase


def _waiting(reasons: tuple[PendingReason, ...]) -> Waiting | None:
    if not reasons:
        return None
    found = distinct(reasons)
    return Waiting(tuple(map(as_data, found)), f"{found[0].action}/{found[0].plugin}: {found[0].code}")


def _says_something(decision: JobDecision, job: Job) -> bool:
    fresh = list(decision.waiting.reasons) if decision.waiting else []
    return bool(decision.gang_phase or decision.binds or decision.evictions or job.waiting != fresh)
