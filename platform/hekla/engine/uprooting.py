"""Make room for a whole gang in one domain by evicting bundles of others (`volcano-spec` §4, gangpreempt, gangreclaim).

Domains are tried the widest first; in each bundles are added until the gang has its places there. What the gang is
promised is nominated, so that the next cycle looks there first.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cmp_to_key

import numpy as np

from hekla.engine.bundles import Bundle, bundles
from hekla.engine.columns import EPSILON, Vector, fits
from hekla.engine.decisions import Barred, Victims
from hekla.engine.domains import Domain
from hekla.engine.gangs import Gang, Member
from hekla.engine.model import Queue
from hekla.engine.placing import Placing
from hekla.engine.policy import Argument
from hekla.engine.session import Session
from hekla.engine.statement import Statement
from hekla.engine.verdicts import Verdict

_MOST_DOMAINS = 8
_PREEMPTABLE = "volcano.sh/preemptable"


@dataclass(frozen=True, slots=True)
class Rules:
    """What tells the two actions apart.

    `barred`: why the action does not consider a member that it otherwise would, or None. `compare`: below zero when the
    left gang goes first.
    """

    action: str
    may_go: Callable[[Gang, Member], bool]
    barred: Callable[[Gang, Member], Barred | None]
    compare: Callable[[Gang, Gang, Gang], float]


class Uprooting:
    """One action at work."""

    def __init__(self, session: Session, rules: Rules, arguments: Mapping[str, Argument]) -> None:
        self._session, self._rules = session, rules
        most = arguments.get("maxDomains")
        self._most = most if isinstance(most, int) and not isinstance(most, bool) and most > 0 else _MOST_DOMAINS
        self._takes_wholes = str(arguments.get("allowWholeBundle", True)).lower() != "false"

    def make_room(self, queue: Queue, gang: Gang) -> bool:
        """Evict for this gang where it helps. False: nothing was changed."""
        return any(self._make_room_in(queue, gang, domain) for domain in self._domains(gang))

    def why_nobody(self, gang: Gang) -> Victims:
        """Who was considered for a gang, in all the domains together where room was looked for."""
        session, rows = self._session, {row for domain in self._domains(gang) for row in domain.rows.tolist()}
        inside = {session.table.nodes[row].name for row in rows}
        found = self._found(gang, inside)
        candidates = [victim for bundle in found for victim in bundle.victims]
        verdict = session.evictable(gang, candidates, self._rules.action)
        free = sum(len(bundle.victims) for bundle in _permitted(found, verdict))
        members = (member for one in session.gangs.values() for member in one.members if member.node in inside)
        barred = Counter(self._left_out(gang, member) for member in members)
        bundled = sum(victim.node in inside for victim in candidates)
        barred[Barred.GANG_NOT_WHOLE] += len(verdict.victims) - free - bundled
        return Victims(
            spared=dict(verdict.spared_by()),
            too_little=free,
            barred={why: number for why, number in barred.items() if why and number},
            nodes=len(rows),
            of_nodes=len(rows),
        )

    def _left_out(self, gang: Gang, member: Member) -> Barred | None:
        """Why a member is no candidate; of those that may go here all count as bound to others that may not."""
        if not self._rules.may_go(gang, member):
            return self._rules.barred(gang, member)
        return Barred.GANG_NOT_WHOLE if _is_preemptable(member) else Barred.NOT_PREEMPTABLE

    def _domains(self, gang: Gang) -> list[Domain]:
        top = self._session.domains.top
        if gang.job.topology is None:
            return [top]
        found = [domain for domains in self._session.gradient(gang, top, "evict") for domain in domains]
        return found[: self._most]

    def _make_room_in(self, queue: Queue, gang: Gang, domain: Domain) -> bool:
        need: Vector = np.sum([member.request for member in gang.pending()], axis=0)
        waiting = self._bundles(gang, domain, need)
        room = self._session.table.future(domain.rows).sum(axis=0)
        chosen: list[Bundle] = []
        while waiting:
            step = max(1, len(chosen) // 4)
            while waiting and (step > 0 or not fits(need, room)):
                chosen.append(waiting.pop(0))
                room, step = room + chosen[-1].local, step - 1
            if fits(need, room) and self._try(queue, gang, domain, chosen):
                return True
        return False

    def _bundles(self, gang: Gang, domain: Domain, need: Vector) -> list[Bundle]:
        """What may go for the gang: first what nobody misses, then the last of the others."""
        session, rules = self._session, self._rules
        inside = {session.table.nodes[row].name for row in domain.rows}
        found = self._found(gang, inside)
        found.sort(key=lambda bundle: -bundle.worth(need))
        found.sort(key=cmp_to_key(lambda left, right: int(np.sign(rules.compare(left.gang, right.gang, gang)))))
        found.sort(key=lambda bundle: not bundle.is_safe)
        verdict = session.evictable(gang, [victim for bundle in found for victim in bundle.victims], rules.action)
        return [replace(bundle, plugins=verdict.plugins) for bundle in _permitted(found, verdict)]

    def _found(self, gang: Gang, inside: Container[str]) -> list[Bundle]:
        found: list[Bundle] = []
        for uid in sorted(self._session.gangs):
            victim = self._session.gangs[uid]
            candidates = [m for m in victim.members if self._rules.may_go(gang, m) and _is_preemptable(m)]
            if candidates:
                found += bundles(victim, candidates, lambda m: m.node in inside)
        return [bundle for bundle in found if bundle.is_safe or self._takes_wholes]

    def _try(self, queue: Queue, gang: Gang, domain: Domain, chosen: Sequence[Bundle]) -> bool:
        statement = Statement(self._session)
        self._evict(statement, gang, chosen)
        mark = len(statement)
        if not Placing(self._session, queue, gang, statement).within(domain) or not self._session.is_pipelined(gang):
            statement.discard()
            return False
        needed = list(chosen) if self._session.policy.follows_volcano else self._needed(chosen)
        placements = [(member, self._session.table.row_of[node]) for member, _, node, _ in statement.save(mark)]
        statement.discard()
        self._evict(statement, gang, needed)
        for member, row in placements:
            statement.place(member, row, now=False)
            self._session.nominated[member.task.uid] = member.node
        statement.commit()
        return True

    def _evict(self, statement: Statement, gang: Gang, chosen: Iterable[Bundle]) -> None:
        for bundle in chosen:
            for victim in bundle.victims:
                statement.evict(victim, self._rules.action, gang.job.uid, bundle.plugins)

    def _needed(self, chosen: Sequence[Bundle]) -> list[Bundle]:
        """Without the bundles whose room nobody was given: they need not go, those chosen last first."""
        table = self._session.table
        free = table.future()
        needed: list[Bundle] = []
        for bundle in reversed(chosen):
            left = free.copy()
            for victim in bundle.victims:
                left[table.row_of[victim.node]] -= victim.request
            if (left > -EPSILON).all():
                free = left
            else:
                needed.insert(0, bundle)
        return needed


def _permitted(found: Iterable[Bundle], verdict: Verdict) -> list[Bundle]:
    """The bundles of which all may go."""
    named = {member.task.uid for member in verdict.victims}
    return [bundle for bundle in found if all(victim.task.uid in named for victim in bundle.victims)]


def _is_preemptable(member: Member) -> bool:
    return member.task.preemptable and member.job.job.annotations.get(_PREEMPTABLE) != "false"
