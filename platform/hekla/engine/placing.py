"""Find a gang its places domain by domain (`volcano-spec` §4, allocateForJob).

Domains come in lists, the closest ones first. In a domain the sub-groups take their turns, each in the best of the
domains below it that hold its minimum; all is tried and taken back, and the best outcome is done again. Of a list that
has an outcome the best is taken, and the later lists are not looked at.
"""

from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np

from hekla.engine.columns import fits
from hekla.engine.decisions import Cause, Reason
from hekla.engine.domains import Domain, Spread
from hekla.engine.gangs import Gang, Member
from hekla.engine.heap import Heap
from hekla.engine.model import Queue, TaskStatus
from hekla.engine.points import Point
from hekla.engine.session import Session
from hekla.engine.statement import Statement, Step
from hekla.engine.subgroups import SubGroup, subgroups


def turn(session: Session, queue: Queue, gang: Gang) -> bool:
    """One turn of a gang whose pods must be close to each other. True when it may have another."""
    if not gang.pending():
        return False
    statement = Statement(session)
    is_placed = Placing(session, queue, gang, statement).in_domains()
    if not is_placed:
        session.reasons[gang.job.uid] = (_no_domain(session, gang),)
    if is_placed and session.is_ready(gang):
        statement.commit()
        return bool(gang.pending())
    if not session.is_pipelined(gang):
        statement.discard()
    return False


def _no_domain(session: Session, gang: Gang) -> Reason:
    pending = gang.pending()
    missing = gang.job.min_available - gang.ready_count - gang.waiting_count
    return Reason(
        cause=Cause.CAPACITY,
        action="allocate",
        plugin="network-topology-aware",
        code="no_domain_fits",
        need=pending[0].task.request,
        tasks=max(missing, 1),
        nodes=session.places(pending[0]).standing(session.dimensions).nodes,
    )


ENOUGH = 8
"""How many domains that work are compared."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a try in one domain came to."""

    is_ready: bool
    score: float
    steps: list[Step]


class Placing:
    """One gang's search. What it finds is done on the statement, and only tentatively."""

    def __init__(self, session: Session, queue: Queue, gang: Gang, statement: Statement) -> None:
        self._session, self._queue, self._gang, self._statement = session, queue, gang, statement
        self._groups = subgroups(gang)

    def in_domains(self) -> bool:
        """Place as much as one turn may, in the best domain. False: nothing was placed."""
        session = self._session
        nominated = self._nominated()
        if nominated is not None and self.within(nominated):
            return True
        if not self._gang.job.sub_groups:
            return self._place_whole(session.domains.top)
        for domains in session.gradient(self._gang, session.domains.top):
            tries = (found for domain in self._in_order_of_tries(domains) if (found := self._try(domain)) is not None)
            outcomes = list(islice(tries, None if session.policy.follows_volcano else ENOUGH))
            if outcomes:
                self._statement.recover(max(outcomes, key=self._worth).steps)
                return True
        return False

    def _nominated(self) -> Domain | None:
        """The domain in which others were evicted for it."""
        rows = self._session.table.row_of
        wanted = (member.task.nominated_node for member in self._gang.pending())
        found = Spread(self._session.domains, (rows[node] for node in wanted if node in rows)).domain()
        if found is None or not self._gang.job.sub_groups:
            return found
        allowed = self._session.gradient(self._gang, self._session.domains.top)
        return found if any(found is domain for domains in allowed for domain in domains) else None

    def within(self, domain: Domain) -> bool:
        """As `in_domains`, in one domain that is already chosen."""
        if not self._gang.job.sub_groups:
            return self._place_whole(domain)
        outcome = self._try(domain)
        if outcome is not None:
            self._statement.recover(outcome.steps)
        return outcome is not None

    def _place_whole(self, domain: Domain) -> bool:
        """A gang without policies is its only sub-group: its own domains are those of the sub-group."""
        return any(self._place(group, domain) is not None for group in self._groups if group.pending())

    def _in_order_of_tries(self, domains: list[Domain]) -> list[Domain]:
        """Unless Volcano is followed, the fullest first: then the first few that work are enough to choose from."""
        if self._session.policy.follows_volcano:
            return domains
        idle, whole = self._session.table.idle, self._session.table.allocatable
        return sorted(domains, key=lambda d: float((idle[d.rows].sum(axis=0) / (whole[d.rows].sum(axis=0) + 1)).mean()))

    def _worth(self, outcome: Outcome) -> tuple[bool, float]:
        """Unless Volcano is followed, a domain with room now goes before one that waits for what ends."""
        return outcome.is_ready and not self._session.policy.follows_volcano, outcome.score

    def _try(self, domain: Domain) -> Outcome | None:
        mark = len(self._statement)
        score = self._fill(domain)
        is_ready = self._session.is_ready(self._gang)
        is_good = score is not None and (is_ready or self._session.is_pipelined(self._gang))
        outcome = Outcome(is_ready, score, self._statement.save(mark)) if is_good and score is not None else None
        self._statement.discard(mark)
        return outcome

    def _fill(self, domain: Domain) -> float | None:
        """Sub-groups in their order, until the gang is ready; the sum of what their domains are worth to them."""
        total: float | None = None
        waiting = self._in_order()
        while len(waiting):
            group = waiting.pop()
            score = self._place(group, domain)
            if score is None:
                continue
            total = (total or 0.0) + score
            if self._session.is_ready(self._gang):
                break
            if group.pending():
                waiting.push(group)
        return total

    def _in_order(self) -> Heap[SubGroup]:
        """Those without which the gang cannot start go first."""
        ordered: Heap[SubGroup] = Heap(self._session.subgroup_before, (g for g in self._groups if g.pending()))
        is_ready = self._session.is_subgroup_ready
        missing = [self._groups.missing(index, is_ready) for index in range(len(self._gang.job.sub_groups))]
        needed: set[SubGroup] = set()
        rest: list[SubGroup] = []
        while len(ordered):
            group = ordered.pop()
            rest.append(group)
            if group.policy is not None and missing[group.index] > 0 and not is_ready(group):
                missing[group.index] -= 1
                needed.add(group)
        return Heap(partial(self._before, needed), rest)

    def _before(self, needed: set[SubGroup], left: SubGroup, right: SubGroup) -> bool:
        if (left in needed) != (right in needed):
            return left in needed
        return self._session.subgroup_before(left, right)

    def _place(self, group: SubGroup, domain: Domain) -> float | None:
        """Place the minimum of a sub-group, or one more task, in its best domain. What that is worth; None: nowhere."""
        for domains in self._session.gradient(group, domain):
            score = self._place_in_best(group, self._that_may_hold(group, domains))
            if score is not None:
                return score
        return None

    def _place_in_best(self, group: SubGroup, left: list[Domain]) -> float | None:
        """The best of those that work. Unless Volcano is followed, those with room now go before all others."""
        mark, later = len(self._statement), None
        while left:
            scores = self._session.domain_scores(group, left)
            at = int(scores.argmax())
            if not self._place_tasks(group, left.pop(at)):
                continue
            if self._session.policy.follows_volcano or self._is_placed_now(group, mark):
                return float(scores[at])
            tried = self._statement.save(mark)
            self._statement.discard(mark)
            if later is None:
                later = Outcome(is_ready=False, score=float(scores[at]), steps=tried)
                left = [domain for domain in left if self._may_have_room_now(group, domain)]
        if later is None:
            return None
        self._statement.recover(later.steps)
        return later.score

    def _is_placed_now(self, group: SubGroup, mark: int) -> bool:
        """Whether what was placed last got room that is there, and the minimum with it."""
        *_, status = self._statement.save(mark)[-1]
        return status is TaskStatus.ALLOCATED and self._session.is_subgroup_ready(group)

    def _may_have_room_now(self, group: SubGroup, domain: Domain) -> bool:
        """By the sum of what its nodes have free: what this rules out need not be tried."""
        table, pending = self._session.table, group.pending()
        smallest = np.minimum.reduce([member.request for member in pending])
        return bool(fits(smallest * max(_missing(group, pending), 1), table.idle[domain.rows].sum(axis=0)))

    def _that_may_hold(self, group: SubGroup, domains: list[Domain]) -> list[Domain]:
        """Those that have room for what is missing, by count, where all who wait are alike."""
        pending = group.pending()
        found = {id(places): places for places in map(self._session.places, pending)}
        if len(found) != 1:
            return list(domains)
        (places,), needed = found.values(), _missing(group, pending)
        return [domain for domain in domains if places.slots(domain.rows) >= needed]

    def _place_tasks(self, group: SubGroup, domain: Domain) -> bool:
        session, statement = self._session, self._statement
        mark, full_for = len(statement), set[str]()
        for member in session.in_task_order(group.pending()):
            if member.task.role in full_for or not session.all_agree(Point.ALLOCATABLE, self._queue, member):
                continue
            best = session.best_place_in(member, domain)
            if best is None:
                full_for.add(member.task.role)
                if group.least >= len(group.members):
                    break
                continue
            statement.place(member, best[0], now=best[1])
            if session.is_subgroup_ready(group):
                return True
        if len(statement) > mark and session.is_subgroup_pipelined(group):
            return True
        statement.discard(mark)
        return False


def _missing(group: SubGroup, pending: list[Member]) -> int:
    """How many of those who wait its minimum still lacks."""
    placed = sum(m.status is not TaskStatus.PENDING or m.best_effort for m in group.members)
    return min(group.least - placed, len(pending))
