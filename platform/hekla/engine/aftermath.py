"""Why nobody was evicted for those who wait: written down once an action is over, for the time when somebody asks.

Counted for each class of a job's waiting tasks, as things stand then. So that it costs little beside the search, only
the first jobs are counted for and only some nodes are looked at; what was left out is said.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from hekla.domain.resources import Resources
from hekla.engine import victims
from hekla.engine.columns import fits
from hekla.engine.decisions import Barred, Cause, Reason, Victims
from hekla.engine.gangs import Gang, Member
from hekla.engine.in_vain import likeness
from hekla.engine.model import TaskStatus
from hekla.engine.points import Point
from hekla.engine.session import Session
from hekla.engine.victims import Grounds

MOST_COUNTS = 16
"""For so many classes of tasks, or whole gangs, an action says who was considered."""
MOST_NODES = 32
"""So many nodes are looked at for each."""


class Aftermath:
    """What one action leaves undone: reasons for jobs that wait in the end, `code` where nobody was found to go."""

    def __init__(self, session: Session, action: str, cause: Cause, code: str) -> None:
        self._session, self._action, self._cause, self._code = session, action, cause, code
        self._found: dict[str, list[Reason]] = defaultdict(list)
        self._of_likes: dict[Hashable, list[Reason]] = {}
        self._left = MOST_COUNTS
        self._overused: dict[str, bool] = {}
        session.on_close.append(self._write)

    def starving(self, gangs: Iterable[Gang]) -> list[Gang]:
        """Those for whom others might still be evicted, the first one first."""
        session = self._session
        waiting = (gang for gang in gangs if gang.count[TaskStatus.PENDING] > gang.pending_best_effort)
        return sorted((gang for gang in waiting if session.is_starving(gang)), key=session.rank)

    def is_told(self, gang: Gang) -> bool:
        """Whether all is said already, of one that is like it. Else what is said of it holds for those too."""
        key = likeness(self._session, gang)
        if key is None:
            return False
        if key in self._of_likes:
            self._found[gang.job.uid] = self._of_likes[key]
            return True
        self._of_likes[key] = self._found[gang.job.uid]
        return False

    def may_take_back(self, gang: Gang, members: Sequence[Member]) -> bool:
        """Whether the queue may take from others for these; if not that is the reason."""
        session, queue = self._session, self._session.queues[gang.job.queue]
        if queue.name not in self._overused:
            self._overused[queue.name] = session.any_says(Point.OVERUSED, queue)
        may = not self._overused[queue.name] and session.all_agree(Point.PREEMPTIVE, queue, members)
        if not may:
            self._forbid(gang, "queue_takes_nothing", gang.count[TaskStatus.PENDING])
        return may

    def of_gang(self, gang: Gang, count: Callable[[Gang], Victims]) -> None:
        """Nobody went for the job as a whole."""
        members = gang.pending()
        if not self._is_enough(gang, len(members)):
            need = sum((member.task.request for member in members), Resources())
            self._note(gang, len(members), need, count(gang))

    def of_tasks(self, gang: Gang, members: list[Member], count: Callable[[Member], Victims]) -> None:
        """Nobody went for these tasks of the job, class by class."""
        willing = [member for member in members if not member.task.never_preempts]
        if len(willing) < len(members):
            self._forbid(gang, "never_evicts", len(members) - len(willing))
        for alike in self._classes(willing):
            if self._is_enough(gang, len(willing)):
                return
            self._note(gang, len(alike), alike[0].task.request, count(alike[0]))

    def _forbid(self, gang: Gang, code: str, tasks: int) -> None:
        self._found[gang.job.uid].append(Reason(self._cause, self._action, "", code, tasks=tasks))

    def _classes(self, members: Iterable[Member]) -> Iterable[list[Member]]:
        """Those that are alike; all of them where nothing is counted any more."""
        classes: dict[Hashable, list[Member]] = defaultdict(list)
        for member in members:
            classes[self._session.class_of(member) if self._left else None].append(member)
        return classes.values()

    def _is_enough(self, gang: Gang, tasks: int) -> bool:
        if self._left:
            self._left -= 1
            return False
        self._forbid(gang, "victims_not_counted", tasks)
        return True

    def _note(self, gang: Gang, tasks: int, need: Resources, found: Victims) -> None:
        reason = Reason(self._cause, self._action, "", self._code, need=need, tasks=tasks, victims=found)
        self._found[gang.job.uid].append(reason)

    def _write(self) -> None:
        for uid, reasons in self._found.items():
            if self._session.gangs[uid].count[TaskStatus.PENDING]:
                self._session.reasons[uid] += (*reasons,)


@dataclass(frozen=True, slots=True)
class Search:
    """How an action that takes pod by pod looks on a node.

    `may_go`: whether it considers a task for another; `barred`: why it does not consider one that it otherwise would,
    or None.
    """

    point: Point
    may_go: Callable[[Member, Member], bool]
    barred: Callable[[Member, Member], Barred | None]

    def again(self, session: Session, grounds: Grounds, member: Member) -> Victims:
        """Look once more where evictions might make room, and count."""
        places = session.places(member)
        places.catch_up()
        curable, listed = places.curable(), session.table.listed
        rows, tally = listed[curable[listed]].tolist(), _Tally()
        for row in rows[:MOST_NODES]:
            self._count(session, grounds, member, row, tally)
        looked = min(len(rows), MOST_NODES)
        return Victims(dict(tally.spared), tally.too_little, tally.in_vain, dict(tally.barred), looked, len(rows))

    def _count(self, session: Session, grounds: Grounds, member: Member, row: int, tally: "_Tally") -> None:
        candidates: list[Member] = []
        for victim in grounds.on_node(row):
            if self.may_go(member, victim):
                candidates.append(victim)
            elif why := self.barred(member, victim):
                tally.barred[why] += 1
        if not candidates:
            return
        verdict, room = session.victims(self.point, member, candidates), session.table.future(row)
        tally.spared += verdict.spared_by()
        if fits(member.request, room + victims.total(verdict.victims, room)):
            tally.in_vain += len(verdict.victims)
        else:
            tally.too_little += len(verdict.victims)


class _Tally:
    def __init__(self) -> None:
        self.spared: Counter[str] = Counter()
        self.barred: Counter[Barred] = Counter()
        self.too_little = self.in_vain = 0
