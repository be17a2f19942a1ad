"""What a queue may take back from others, and who must give."""

from collections.abc import Sequence
from itertools import zip_longest

from hekla.engine import victims
from hekla.engine.columns import EPSILON, Mask, Vector, fits
from hekla.engine.gangs import Gang, Member
from hekla.engine.model import Queue
from hekla.engine.plugins.capacity.books import Account, Books
from hekla.engine.queue_tree import ROOT
from hekla.engine.session import Session


class Reclaim:
    """A queue takes back up to what it deserves from queues that hold more than they deserve.

    `level`: how many of the queues above count too (the root never does).
    """

    def __init__(self, session: Session, books: Books, level: int) -> None:
        self._session, self._books, self._level = session, books, level
        self._countable = session.dimensions.without_pods

    def preemptive(self, queue: Queue, members: Sequence[Member]) -> bool:
        """Within its bound, and within what it (or a queue above) deserves in at least one dimension asked for."""
        account, wanted = self._books[queue.name], victims.total(members, self._session.total)
        asked = self._asked(wanted)
        if account.problem or not queue.is_open or (account.allocated + wanted > account.real)[asked].any():
            return False
        return any(_deserves(one, wanted, asked) for one in (account, *self._above(account)))

    def reclaimable(self, member: Member, candidates: Sequence[Member]) -> list[Member]:
        """Of each queue as many as it holds beyond what it deserves, in the order in which victims go."""
        order = victims.in_order(self._session, candidates, member.job)
        ordered = [order.pop() for _ in range(len(order))]
        reclaimer = self._books[member.job.job.queue]
        asked = self._asked(member.request)
        alike = [victim for victim in ordered if (self._asked(victim.request) & asked).any()]
        return self._borrowed(reclaimer, alike, asked)

    def evictable(self, gang: Gang, candidates: Sequence[Member], action: str) -> list[Member]:
        """For a whole gang: between queues the same; within a queue this plugin has nothing against it."""
        if action != "gangreclaim":
            return list(candidates)
        asked = self._asked(victims.total(gang.pending(), self._session.total))
        return self._borrowed(self._books[gang.job.queue], candidates, asked)

    def _borrowed(self, reclaimer: Account, candidates: Sequence[Member], asked: Mask) -> list[Member]:
        left: dict[str, Vector] = {}
        chosen: list[Member] = []
        for victim in () if reclaimer.problem else candidates:
            account = self._books[victim.job.job.queue]
            held = {one.queue.name: left.get(one.queue.name, one.allocated) for one in account.line}
            if self._may_give(reclaimer, account, victim, held, asked):
                left |= {name: amount - victim.request for name, amount in held.items()}
                chosen.append(victim)
        return chosen

    def _may_give(
        self, reclaimer: Account, account: Account, victim: Member, held: dict[str, Vector], asked: Mask
    ) -> bool:
        rest = held[account.queue.name] - victim.request
        if not fits(account.guarantee, rest):
            return False
        relevant = self._asked(victim.request)
        if not (relevant & account.owned).any():
            if self._is_kept_in_family(reclaimer, account, asked):
                return False
        elif not _is_over(account, held, relevant):
            return False
        pairs = zip_longest(self._above(account), self._above(reclaimer))
        return all(_is_over(above, held, relevant) for above, theirs in pairs if above and above is not theirs)

    def _is_kept_in_family(self, reclaimer: Account, account: Account, asked: Mask) -> bool:
        """Neither owns anything of the kind, and both belong to one queue above: what it owns is already at home."""
        theirs = {one.queue.name for one in self._above(reclaimer)}
        related = any(one.queue.name in theirs for one in self._above(account))
        return related and not (reclaimer.owned & asked).any()

    def _above(self, account: Account) -> list[Account]:
        return [one for one in account.line[1 : 1 + self._level] if one.queue.name != ROOT]

    def _asked(self, amount: Vector) -> Mask:
        asked: Mask = (amount > 0) & self._countable
        return asked


def _deserves(account: Account, wanted: Vector, asked: Mask) -> bool:
    """Some dimension asked for would stay within what is deserved; where both are nothing, nothing is said."""
    future = account.allocated + wanted
    known = asked & ~((future < EPSILON) & (account.deserved < EPSILON))
    return bool((future < account.deserved + EPSILON)[known].any())


def _is_over(account: Account, held: dict[str, Vector], relevant: Mask) -> bool:
    return bool((held[account.queue.name] > account.deserved)[relevant & account.owned].any())
