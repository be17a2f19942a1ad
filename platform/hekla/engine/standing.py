"""How queues stand when a cycle begins: what each holds and deserves, and who waits in it, as the policy's plugins say.

    standings = {}
    cycle(state, policy, now, opened=lambda session: standings.update(standing.of_all(session)))

Nothing is counted here a second time: the figures are the accounts that the plugin keeps which divides the cluster
(`Point.QUEUE_ACCOUNT`), and the order is the one in which the actions take jobs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine import backlog
from hekla.engine.accounts import Account
from hekla.engine.columns import Vector
from hekla.engine.gangs import Gang
from hekla.engine.model import Queue
from hekla.engine.points import Point
from hekla.engine.session import Session


@dataclass(frozen=True, slots=True)
class Standing:
    """One queue.

    `pending`: what the jobs in its line wait for, the least of those that were not let in yet. `bound`: the most that
    it may hold, where that is bounded. `borrowed`: what it holds beyond what it deserves. `lent`: what it deserves and
    leaves, as far as others borrow it. `share`: how much of what it deserves it holds, 1.0 being all.
    `divided_by`: the plugin that says what it deserves; empty where none does. `above`: the queues that it counts for.
    `line`: the uids of the jobs that wait in it, in the order of their turns.
    """

    held: Resources
    pending: Resources
    guarantee: Resources
    deserved: Resources
    bound: Resources
    borrowed: Resources
    lent: Resources
    share: float
    divided_by: str
    above: tuple[str, ...]
    line: tuple[str, ...]


def of_all(session: Session, *, line_of: str | None = None) -> dict[str, Standing]:
    """Every queue that makes sense, by name. `line_of`: the one queue whose line is asked for; None: that of each."""
    lines = _lines(session, line_of)
    found = {name: _of(session, queue, lines.get(name, [])) for name, queue in session.queues.items()}
    borrowers = _borrowers(found)
    return {name: replace(one, lent=_lent(name, one, borrowers)) for name, one in found.items()}


def _of(session: Session, queue: Queue, line: list[Gang]) -> Standing:
    plugin, account = _account(session, queue)
    amounts = session.dimensions.resources
    weigh = next(iter(session.answers(Point.QUEUE_SHARE)), None)
    return Standing(
        held=amounts(account.allocated),
        pending=amounts(sum(map(_missing, line), np.zeros_like(session.total))),
        guarantee=amounts(account.guarantee),
        deserved=amounts(account.deserved),
        bound=amounts(np.where(np.isfinite(account.real), account.real, 0.0)),
        borrowed=amounts(account.allocated - account.deserved) if plugin else Resources(),
        lent=Resources(),
        share=float(weigh(queue, (), ())) if weigh and queue.name in session.sums else 0.0,
        divided_by=plugin,
        above=account.above,
        line=tuple(gang.job.uid for gang in line),
    )


def _account(session: Session, queue: Queue) -> tuple[str, Account]:
    """As the first plugin counts that does; else what it holds and asks for, and no more."""
    for tier in session.voices(Point.QUEUE_ACCOUNT):
        for plugin, answer in tier:
            return plugin, answer(queue)
    nothing: Vector = np.zeros_like(session.total)
    sums = session.sums.get(queue.name)
    held, asked = (sums.allocated, sums.request) if sums else (nothing, nothing)
    return "", Account(queue, nothing, session.total, nothing, held, asked, nothing, nothing)


def _borrowers(every: Mapping[str, Standing]) -> dict[str, Standing]:
    """The queues that borrow for themselves, not for those below them."""
    inner = {above for one in every.values() for above in one.above}
    return {name: one for name, one in every.items() if one.borrowed and name not in inner}


def _lent(name: str, mine: Standing, borrowers: Mapping[str, Standing]) -> Resources:
    """What it leaves, as far as queues borrow that do not count for it."""
    others = (one.borrowed for other, one in borrowers.items() if other != name and name not in one.above)
    borrowed, left = sum(others, Resources()), mine.deserved - mine.held
    return Resources({one: min(left.amount(one), borrowed.amount(one)) for one in left if left.amount(one) > 0})


def _lines(session: Session, only: str | None) -> dict[str, list[Gang]]:
    asked = (gang for gang in session.unsettled.values() if only in (None, gang.job.queue))
    waiting = backlog.by_queue(session, filter(_waits, asked))
    return {name: [gangs.pop() for _ in range(len(gangs))] for name, gangs in waiting.items()}


def _waits(gang: Gang) -> bool:
    return gang.phase is GangPhase.PENDING or gang.pending_count > 0


def _missing(gang: Gang) -> Vector:
    wanted = gang.request if gang.minimum is None else np.maximum(gang.request, gang.minimum)
    return wanted - gang.allocated
