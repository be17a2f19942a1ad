"""The deserved shares of queues under proportion (`volcano-spec` §5.2)."""

from dataclasses import dataclass, field

from tests.engine.reference.amounts import INFINITY, Amounts, at_most, plus, surplus, total
from tests.engine.reference.state import ReferenceState, S

from hekla.domain.phases import GangPhase
from hekla.engine.model import QueueSpec


@dataclass(eq=False)
class Share:
    queue: QueueSpec
    real: Amounts
    request: Amounts
    inqueue: Amounts
    elastic: Amounts
    deserved: Amounts = field(default_factory=dict)


def shares(state: ReferenceState) -> dict[str, Share]:
    """The shares of all queues with jobs, by name."""
    found = {job.queue: _share(state, state.queues[job.queue]) for job in state.jobs}
    _divide(state.total, list(found.values()))
    return found


def _share(state: ReferenceState, queue: QueueSpec) -> Share:
    jobs = [job for job in state.jobs if job.queue == queue.name]
    pending = total(task.request for job in jobs for task in job.tasks if task.status is S.PENDING)
    inqueue: Amounts = {}
    for job in jobs:
        runs = job.phase is GangPhase.RUNNING and job.ready >= job.spec.min_available
        if job.phase is GangPhase.INQUEUE or runs:
            inqueue = plus(inqueue, surplus(job.least, job.allocated))
    request = plus(total(job.allocated for job in jobs), pending)
    elastic = total(surplus(job.allocated, job.least) for job in jobs)
    return Share(queue, _real(state, queue), request, inqueue, elastic)


def _real(state: ReferenceState, queue: QueueSpec) -> Amounts:
    guarantees = total(other.guarantee or {} for other in state.queues.values())
    room = plus(surplus(state.total, guarantees), queue.guarantee or {})
    bound = queue.capability or {}
    return {name: min(amount, bound.get(name, INFINITY)) for name, amount in room.items()}


def _divide(everything: Amounts, all_shares: list[Share]) -> None:
    remaining, unmet = dict(everything), list(all_shares)
    while unmet:
        weights, before = sum(share.queue.weight for share in unmet), dict(remaining)
        granted: Amounts = {}
        for share in list(unmet):
            old = dict(share.deserved)
            share.deserved = _grown(share, before, weights)
            granted = plus(granted, plus(share.deserved, old, -1))
            is_same = all(share.deserved[name] == old.get(name, 0.0) for name in share.deserved)
            if at_most(share.request, share.deserved) or is_same:
                unmet.remove(share)
        remaining = surplus(remaining, granted)
        is_empty = all(amount < 0.1 for name, amount in remaining.items() if name != "pods")
        if is_empty or all(remaining[name] == before.get(name, 0.0) for name in remaining):
            return


def _grown(share: Share, remaining: Amounts, weights: int) -> Amounts:
    grown: Amounts = {}
    for name in {**remaining, **(share.queue.guarantee or {})}:
        amount = share.deserved.get(name, 0.0) + remaining.get(name, 0.0) * (share.queue.weight / weights)
        amount = min(amount, share.real.get(name, INFINITY), share.request.get(name, 0.0))
        grown[name] = max(amount, (share.queue.guarantee or {}).get(name, 0.0))
    return grown
