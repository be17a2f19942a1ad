"""One cycle's working state: columns of nodes, gangs, queues, and what each plugin has to say at each point.

Plugins register functions under an extension point; `session.ask…` combines their answers by Volcano's rules
(`volcano-spec` §3.2): tiers in order, plugins in order, each only where its switch is on.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cmp_to_key
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from hekla.engine import registry, shards, verdicts
from hekla.engine.census import Census
from hekla.engine.columns import Mask, Vector
from hekla.engine.decisions import Bind, Cause, Eviction, Reason
from hekla.engine.domains import Domain
from hekla.engine.faults import guarded
from hekla.engine.gangs import Gang, Member
from hekla.engine.model import Queue, TaskStatus
from hekla.engine.places import Places
from hekla.engine.points import Point, Vote
from hekla.engine.policy import PluginOption, Policy
from hekla.engine.subgroups import SubGroup
from hekla.engine.verdicts import Verdict, Voice
from hekla.engine.world import World

Answer = Callable[..., Any]
_UID: Callable[[Gang], str] = attrgetter("job.uid")
Call = Callable[[str, Mapping[str, Any], float], Any]
"""Asks another program: address, document, seconds to wait at most; the answer's document. Raises what it likes."""


class Session:
    """See the module. `reasons` collects why jobs wait; `binds` and `evictions` what was decided."""

    def __init__(self, world: World, policy: Policy, now: float, call: Call | None = None) -> None:
        self.world, self.state, self.policy, self.now, self.call = world, world.state, policy, now, call
        self.dimensions = world.dimensions
        self.table = world.table.for_session()
        self.total: Vector = self.table.allocatable.sum(axis=0)
        self.queues, self.gangs, self.unsettled = world.queues, world.gangs, world.unsettled
        self.residents = world.residents
        """For each row the tasks that hold or are promised something there, by uid."""
        self.sums = world.ledger.of_queue
        """What the jobs of each queue held and asked for before the session."""
        self.storage, self.devices = world.state.storage, world.state.devices
        self.nodes, self.domains = world.nodes, world.domains
        self.binds: list[Bind] = []
        self.evictions: list[Eviction] = []
        self.ranks_shift = False
        """Whether a plugin ranks jobs by more than what they are and hold themselves; it says so when it opens."""
        self.taken_back = 0
        """How many evictions were taken back."""
        self.woken = 0
        """How many of them were of tasks that did not run yet, and count as running since then."""
        self.nominated: dict[str, str] = {}
        """Task to node: what evictions of this session make room for."""
        self.looked_at: set[str] = set()
        """Tasks for which an action has looked for a place."""
        self._lost: set[str] = set()
        """Tasks that were to go and stay: Volcano's scorers do not count them any more."""
        self.reasons: dict[str, tuple[Reason, ...]] = defaultdict(tuple)
        self.on_change: list[Callable[[Member, int, int], None]] = []
        """Told after each change: member, row of its node, and 1 for a place taken, -1 for one given back."""
        self.bound_by: Callable[[Gang], Hashable] = _by_nothing
        """Which bounds a gang counts for, beside its queue's (`bounds`)."""
        self.notes: dict[str, Mapping[str, str]] = {}
        """Task to the annotations that it gets when it is bound."""
        self.on_close: list[Callable[[], None]] = []
        self._token = object()
        """What tells this session from others."""
        self._answers: dict[Point, dict[int, Answer]] = defaultdict(dict)
        self._standing: dict[Point, list[Answer]] = defaultdict(list)
        """What is said under every policy, before all plugins."""
        self._listed: dict[Point, list[Answer]] = {}
        self._fleeting: set[Point] = set()
        self._voices: dict[Point, list[list[Voice]]] = {}
        self._places: dict[Hashable, Places] = {}
        self._classes: dict[str, Hashable] = {}
        self.census = Census(self.residents, world.sights)
        self.on_change.append(self.census.hear)
        self._shard = shards.of_session(world.state, self.table)

    # What plugins say.

    def register(self, point: Point, option: PluginOption, answer: Answer, *, is_lasting: bool = False) -> None:
        """Let a plugin speak at a point, unless its switch is off.

        `is_lasting`: its no to one is a no to all that are alike (`lines`), as long as nothing is given back; where
        jobs are ordered, those that are alike differ in nothing but their age.
        """
        if not point.switch or option.has(point.switch):
            self._answers[point][id(option)] = guarded(option, point, answer)
            if not is_lasting:
                self._fleeting.add(point)
            self.ranks_shift |= point is Point.JOB_ORDER and registry.is_foreign(option.name)
            self._listed.clear()
            self._voices.clear()

    def always(self, point: Point, answer: Answer) -> None:
        """Say something at a point under every policy. A no lasts, as that of a plugin may (`register`)."""
        self._standing[point].append(answer)

    def is_lasting(self, point: Point) -> bool:
        """Whether a no at this point lasts (`register`)."""
        return point not in self._fleeting

    def points_of(self, option: PluginOption) -> frozenset[Point]:
        """Where a plugin speaks."""
        return frozenset(point for point, answers in self._answers.items() if id(option) in answers)

    def _in_tiers(self, point: Point) -> Iterator[list[Answer]]:
        answers = self._answers[point]
        if point in self._standing:
            yield self._standing[point]
        for tier in self.policy.tiers:
            yield [answers[id(option)] for option in tier if id(option) in answers]

    def answers(self, point: Point) -> list[Answer]:
        """Everything registered at a point, in order."""
        found = self._listed.get(point)
        if found is None:
            found = self._listed[point] = [answer for tier in self._in_tiers(point) for answer in tier]
        return found

    def all_agree(self, point: Point, *arguments: object) -> bool:
        """No plugin says no."""
        return all(answer(*arguments) for answer in self.answers(point))

    def any_says(self, point: Point, *arguments: object) -> bool:
        """Some plugin says yes."""
        return any(answer(*arguments) for answer in self.answers(point))

    def is_permitted(self, point: Point, *arguments: object) -> bool:
        """Votes: one rejection ends it, a tier with a permission decides, abstentions pass on."""
        for tier in self._in_tiers(point):
            votes = [answer(*arguments) for answer in tier]
            if Vote.REJECT in votes:
                return False
            if Vote.PERMIT in votes:
                return True
        return True

    # Order.

    def compare(self, point: Point, *sides: object) -> float:
        """What the first plugin that makes a difference says: below zero when the left side goes first."""
        return next((sign for answer in self.answers(point) if (sign := answer(*sides))), 0)

    def job_before(self, left: Gang, right: Gang) -> bool:
        """Job order: plugins, then age, then name."""
        return self.rank(left) < self.rank(right)

    def compare_jobs(self, left: Gang, right: Gang) -> int:
        """Job order by the plugins alone: below zero when the left one goes first."""
        mine, other = self.rank(left)[:-2], self.rank(right)[:-2]
        return (mine > other) - (mine < other)

    def rank(self, gang: Gang) -> tuple[Any, ...]:
        """What jobs are ordered by: what each plugin says, then age and name. It holds until the job changes."""
        stamp = len(self.table.touched) if self.ranks_shift else gang.version
        if gang.rank is None or gang.rank[1] != stamp or gang.rank[0] is not self._token:
            said = [answer(gang) for answer in self.answers(Point.JOB_ORDER)]
            gang.rank = self._token, stamp, (*said, gang.job.created_at, gang.job.uid)
        return gang.rank[2]

    def queue_before(self, left: Queue, right: Queue) -> bool:
        """Queue order: plugins, then age, then name."""
        if sign := self.compare(Point.QUEUE_ORDER, left, right):
            return sign < 0
        return (left.created_at, left.name) < (right.created_at, right.name)

    def task_before(self, left: Member, right: Member) -> bool:
        """Task order: plugins, then the number at the end of the name, then age, then id."""
        for answer in self.answers(Point.TASK_ORDER):
            if sign := answer(left, right):
                return bool(sign < 0)
        return left.key < right.key

    def in_task_order(self, members: Iterable[Member]) -> list[Member]:
        """All of them, the first one first."""
        by_name = sorted(members, key=attrgetter("key"))
        if not self.answers(Point.TASK_ORDER):
            return by_name

        def compare(left: Member, right: Member) -> int:
            sign = self.compare(Point.TASK_ORDER, left, right)
            return (sign > 0) - (sign < 0)

        return sorted(by_name, key=cmp_to_key(compare))

    def subgroup_before(self, left: SubGroup, right: SubGroup) -> bool:
        """Sub-group order: plugins, then the order of policies, then the values of their labels."""
        if sign := self.compare(Point.SUBJOB_ORDER, left, right):
            return sign < 0
        return (left.index, left.values) < (right.index, right.values)

    # Questions.

    def is_ready(self, gang: Gang) -> bool:
        """Enough of the gang has a place for it to start."""
        return self.all_agree(Point.JOB_READY, gang)

    def is_pipelined(self, gang: Gang) -> bool:
        """Enough of the gang has a place, or is promised one."""
        return self.is_permitted(Point.JOB_PIPELINED, gang)

    def is_subgroup_ready(self, group: SubGroup) -> bool:
        """Enough of the sub-group has a place for it to start."""
        return self.is_ready(group.gang) if group.is_whole else self.all_agree(Point.SUBJOB_READY, group)

    def is_subgroup_pipelined(self, group: SubGroup) -> bool:
        """Enough of the sub-group has a place, or is promised one."""
        if group.is_whole:
            return self.is_pipelined(group.gang)
        return self.is_permitted(Point.SUBJOB_PIPELINED, group)

    def places(self, member: Member) -> Places:
        """The places of the task's class."""
        key = self.class_of(member)
        found = self._places.get(key)
        if found is None:
            found = Places(member, self.table, self.answers)
            self._places[key] = found
        return found

    def class_of(self, member: Member) -> Hashable:
        """What tasks have in common that may go to the same places and like them equally."""
        if not self._answers[Point.TASK_CLASS]:
            return member.shape
        uid = member.task.uid
        if uid not in self._classes:
            self._classes[uid] = (member.shape, *(answer(member) for answer in self.answers(Point.TASK_CLASS)))
        return self._classes[uid]

    def examples(self, gang: Gang) -> list[Member]:
        """Of those of its tasks that wait for a place and ask for something, one of each class."""
        if not self._answers[Point.TASK_CLASS]:
            return gang.examples()
        return list({self.class_of(member): member for member in gang.pending()}.values())

    def best_place(self, member: Member, within: Mask | None = None) -> tuple[int, bool] | None:
        """The node that evictions made room on for it, if it is there; else the best of all (as `Places.best`)."""
        places, row = self.places(member), self.table.row_of.get(member.task.nominated_node)
        if row is not None and (now := places.room_on(row)) is not None:
            return row, now
        if self._shard is not None:
            return shards.best(places, self._shard, within)
        return places.best(within)

    def best_place_in(self, member: Member, domain: Domain) -> tuple[int, bool] | None:
        """As `best_place`, of the nodes of a domain."""
        places, row = self.places(member), self.table.row_of.get(member.task.nominated_node)
        if row is not None and row in domain.rows and (now := places.room_on(row)) is not None:
            return row, now
        scorers = self.answers(Point.DOMAIN_NODE_ORDER)

        def more(rows: npt.NDArray[np.intp]) -> Vector:
            return sum((scorer(member, rows) for scorer in scorers), np.zeros(len(rows)))

        return places.best_of(domain.rows, more)

    def gradient(self, claim: Gang | SubGroup, domain: Domain, purpose: str = "allocate") -> list[list[Domain]]:
        """The domains below one that come into question, the best list first: the first plugin decides."""
        answer = next(iter(self.answers(Point.HYPERNODE_GRADIENT)), None)
        return [[domain]] if answer is None else answer(claim, domain, purpose)

    def domain_scores(self, group: SubGroup, domains: Sequence[Domain]) -> Vector:
        """What each domain is worth for a sub-group."""
        answers = self.answers(Point.HYPERNODE_ORDER)
        return sum((answer(group, domains) for answer in answers), np.zeros(len(domains)))

    @property
    def candidates(self) -> Iterable[Gang]:
        """Gangs that may have something left to do; all, where the last tie must be Volcano's: there the others take
        part in the order of those that wait.
        """
        return self.gangs.values() if self.policy.follows_volcano else self.unsettled.values()

    def valid_gangs(self, *, among: Iterable[Gang] | None = None) -> list[Gang]:
        """Of the candidates, or `among` others, those that were let in and may be placed, in order of their ids.

        What makes the others invalid is noted.
        """
        asked = self.candidates if among is None else among
        admitted = (gang for gang in asked if gang.is_admitted)
        return [gang for gang in sorted(admitted, key=_UID) if self.is_valid(gang)]

    def is_valid(self, gang: Gang) -> bool:
        """Whether it may be placed; if not, why is noted."""
        for answer in self.answers(Point.JOB_VALID):
            if (problem := answer(gang)) is not None:
                if problem not in self.reasons[gang.job.uid]:
                    self.reasons[gang.job.uid] += (problem,)
                return False
        return True

    def note_alike(self, gang: Gang, others: Iterable[Gang]) -> None:
        """What was noted about a gang is true of these as well."""
        self.reasons.update(dict.fromkeys(map(_UID, others), self.reasons[gang.job.uid]))

    def is_starving(self, gang: Gang) -> bool:
        """Whether it may evict others: in the first tier that has an opinion, all agree."""
        for tier in self._in_tiers(Point.JOB_STARVING):
            if tier:
                return all(answer(gang) for answer in tier)
        return False

    def voices(self, point: Point) -> list[list[Voice]]:
        """Tier by tier who speaks at a point."""
        found = self._voices.get(point)
        if found is None:
            answers, tiers = self._answers[point], self.policy.tiers
            found = [[(one.name, answers[id(one)]) for one in tier if id(one) in answers] for tier in tiers]
            self._voices[point] = found
        return found

    def victims(self, point: Point, member: Member, candidates: Sequence[Member]) -> Verdict:
        """Who of the candidates may be evicted for the member (`verdicts`).

        Unless the policy asks for Volcano's behaviour, whom a plugin spares is no candidate in any tier.
        """
        if self.policy.follows_volcano:
            return verdicts.by_tiers(self.voices(point), (member, candidates), candidates)
        protectors = chain.from_iterable(self.voices(Point.SPARED))
        kept, spared = verdicts.without_spared(protectors, member, candidates)
        found = verdicts.by_tiers(self.voices(point), (member, kept), candidates)
        return found._replace(spared=spared) if spared else found

    def evictable(self, gang: Gang, candidates: Sequence[Member], action: str) -> Verdict:
        """Who may be evicted for a whole gang. As `victims`; unless Volcano is followed all plugins must agree."""
        voices = self.voices(Point.EVICTABLE)
        if self.policy.follows_volcano:
            return verdicts.by_tiers(voices, (gang, candidates, action), candidates)
        return verdicts.in_turn(chain.from_iterable(voices), gang, candidates, action)

    def victim_tasks(self) -> list[tuple[Member, tuple[str, ...]]]:
        """Who is to go in any case, and which plugins say so: those of the first tier that names anybody."""
        running = [m for gang in self.gangs.values() for m in gang.members if m.status is TaskStatus.RUNNING]
        for tier in self.voices(Point.VICTIM_TASKS):
            found: dict[str, tuple[Member, tuple[str, ...]]] = {}
            for name, answer in tier:
                for member in answer(running):
                    _, others = found.get(member.task.uid, (member, ()))
                    found[member.task.uid] = member, (*others, name)
            if found:
                return list(found.values())
        return []

    def is_kept_out(self, gang: Gang) -> bool:
        """Whether its queue lets nobody in any more; if so, that is noted."""
        if not self.queues[gang.job.queue].is_draining:
            return False
        self.reasons[gang.job.uid] = (Reason(Cause.QUOTA, "enqueue", "", "queue_draining"),)
        return True

    # Changes.

    def place(self, member: Member, row: int, status: TaskStatus) -> None:
        """Allocate or pipeline a task."""
        if status is TaskStatus.PIPELINED:
            self.table.promise(row, member.request)
        else:
            self.table.take(row, member.request)
            member.job.allocated = member.job.allocated + member.request
        member.job.claimed = member.job.claimed + member.request
        self._move(member, status, self.table.nodes[row].name)
        self.residents[row][member.task.uid] = member
        self._tell(member, row, 1)

    def unplace(self, member: Member) -> None:
        """Take back what `place` did."""
        row = self.table.row_of[member.node]
        if member.status is TaskStatus.PIPELINED:
            self.table.promise(row, member.request, -1)
        else:
            self.table.take(row, member.request, -1)
            member.job.allocated = member.job.allocated - member.request
        member.job.claimed = member.job.claimed - member.request
        self._move(member, TaskStatus.PENDING, "")
        del self.residents[row][member.task.uid]
        self._tell(member, row, -1)

    def evict(self, member: Member) -> None:
        """A task that holds a place is on its way out: it still holds it, and nothing counts on it any more."""
        row = self.table.row_of[member.node]
        self.table.release(row, member.request, counts=member.task.uid not in self._lost)
        member.job.allocated = member.job.allocated - member.request
        member.job.claimed = member.job.claimed - member.request
        self._move(member, TaskStatus.RELEASING, member.node)
        self._tell(member, row, -1)

    def unevict(self, member: Member) -> None:
        """Take back what `evict` did; the task counts as running, whatever it was (`volcano-spec` §3.4)."""
        row = self.table.row_of[member.node]
        self.taken_back += 1
        self.woken += member.task.status is not TaskStatus.RUNNING
        if self.policy.follows_volcano:
            self._lost.add(member.task.uid)
        self.table.release(row, member.request, -1, counts=not self.policy.follows_volcano)
        member.job.allocated = member.job.allocated + member.request
        member.job.claimed = member.job.claimed + member.request
        self._move(member, TaskStatus.RUNNING, member.node)
        self._tell(member, row, 1)

    def bind(self, member: Member) -> None:
        """The placement is final."""
        notes = self.notes.get(member.task.uid, {})
        self.binds.append(Bind(member.job.job.uid, member.task.uid, member.node, notes))
        self._move(member, TaskStatus.BINDING, member.node)

    def admit(self, gang: Gang) -> None:
        """The job is let in."""
        self.world.touch(gang)
        gang.admit()

    def _move(self, member: Member, status: TaskStatus, node: str) -> None:
        self.world.touch(member.job)
        member.job.move(member, status, node)

    def _tell(self, member: Member, row: int, sign: int) -> None:
        for heard in self.on_change:
            heard(member, row, sign)


def _by_nothing(_gang: Gang) -> Hashable:
    return ()


def infinite_where_absent(session: Session, amounts: Any) -> Vector:  # noqa: ANN401
    """A bound as a row: what is not named has no limit."""
    row = np.full(len(session.dimensions.names), np.inf)
    for at, name in enumerate(session.dimensions.names):
        if amounts and name in amounts:
            row[at] = amounts[name]
    return row
