"""Convert the engine's decisions to the decisions that the jobs app records."""

from collections import defaultdict
from collections.abc import Mapping

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
    starting = _starting(snapshot, decisions)
    found = (
        JobDecision(
            job_id=job.pk,
            version=job.version,
            revision=job.revision,
            gang_phase=_new_phase(GangPhase(job.gang_phase), decisions.phases.get(uid)),
            binds=binds[uid],
            annotations=annotations.get(uid, {}),
            evictions=evictions[uid],
            waiting=_waiting(decisions.reasons.get(uid, ())) if job.pk not in starting else None,
        )
        for uid, job in snapshot.jobs.items()
    )
    return [decision for decision in found if _says_something(decision, snapshot)]


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


def _starting(snapshot: Snapshot, decisions: Decisions) -> set[int]:
    """Jobs that were just admitted. They have no pending reason: their pods are created before the next round."""
    have_pods = {pods[0].job_id for pods in snapshot.pods_by_job if pods}
    inside = (job.pk for uid, job in snapshot.jobs.items() if decisions.phases.get(uid) is not GangPhase.PENDING)
    return set(inside) - have_pods


def _new_phase(old: GangPhase, new: GangPhase | None) -> GangPhase | None:
    return None if new is None or new is old else new


def _waiting(reasons: tuple[PendingReason, ...]) -> Waiting | None:
    if not reasons:
        return None
    found = distinct(reasons)
    return Waiting(tuple(map(as_data, found)), f"{found[0].action}/{found[0].plugin}: {found[0].code}")


def _says_something(decision: JobDecision, snapshot: Snapshot) -> bool:
    stored = snapshot.jobs[str(decision.job_id)].waiting
    fresh = list(decision.waiting.reasons) if decision.waiting else []
    return bool(decision.gang_phase or decision.binds or decision.evictions or stored != fresh)
