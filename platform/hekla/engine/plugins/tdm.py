"""Time division: nodes that are lent to the cluster for some hours of the day (`volcano-spec` §5.5).

A node with the label `volcano.sh/revocable-zone` belongs to a zone; the argument `tdm.revocable-zone.<zone>` says when
it is lent (`22:00-06:00`, by UTC). Then tasks that bear to be revoked may run there, and are liked there; after it they
are moved off, as many at a time as the disruption budget of their job bears.

In Volcano a window is anchored at its start today, so that after midnight an overnight window is closed: here it is
open until its end, unless the policy asks for Volcano's behaviour.
"""

import re
from collections.abc import Callable, Sequence

import numpy as np

from hekla.engine import budgets
from hekla.engine.columns import NodeTable, Rows, Vector
from hekla.engine.durations import seconds
from hekla.engine.gangs import Gang, Member
from hekla.engine.model import TaskStatus
from hekla.engine.places import Refusal
from hekla.engine.points import Point, Vote
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_ZONE = "volcano.sh/revocable-zone"
_PREEMPTABLE = "volcano.sh/preemptable"
_ARGUMENT = "tdm.revocable-zone."
_WINDOW = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)-([01]?\d|2[0-3]):([0-5]\d)", re.ASCII)
_DAY, _HOUR, _MINUTE = 86_400, 3_600, 60
_LIKED = 100.0


def open_session(session: Session, option: PluginOption) -> None:
    """Keep lent nodes for tasks that may be revoked, and give them back in time."""
    zones = _Zones(session, option)
    session.register(Point.TASK_CLASS, option, _is_revocable)
    session.register(Point.PREDICATE, option, zones.refusals)
    session.register(Point.WIDE_NODE_ORDER, option, zones.scorer)
    session.register(Point.JOB_ORDER, option, lambda gang: gang.job.preemptable)
    session.register(Point.JOB_PIPELINED, option, lambda g: Vote.PERMIT if g.is_pipelined else Vote.REJECT)
    session.register(Point.JOB_STARVING, option, _is_starving)
    session.register(Point.PREEMPTABLE, option, zones.preemptable)
    session.register(Point.SPARED, option, lambda _member, candidates: _beyond_budget(candidates))
    session.register(Point.VICTIM_TASKS, option, zones.overdue)


def is_open(window: str, now: float, *, follows_volcano: bool) -> bool:
    """Whether a window is open at this second; one that is none never is. An end like the start means all day."""
    match = _WINDOW.fullmatch(window.strip())
    if not match:
        return False
    start, end = (int(match[at]) * _HOUR + int(match[at + 1]) * _MINUTE for at in (1, 3))
    second = now % _DAY
    if start < end:
        return start <= second < end
    return second >= start or (second < end and not follows_volcano)


class _Zones:
    """The zones, which of them are lent now, and who has to do with them."""

    def __init__(self, session: Session, option: PluginOption) -> None:
        self._session, self._follows = session, session.policy.follows_volcano
        windows = {name.removeprefix(_ARGUMENT): str(text) for name, text in option.arguments.items()
                   if name.startswith(_ARGUMENT)}  # fmt: skip
        self._open = {name: is_open(text, session.now, follows_volcano=self._follows)
                      for name, text in windows.items()}  # fmt: skip
        self._period = seconds(str(option.arguments.get("tdm.evict.period", ""))) or _MINUTE
        of_nodes = [node.labels.get(_ZONE, "") for node in session.table.nodes]
        self._of_nodes = of_nodes
        self._is_lent = np.array([bool(zone) for zone in of_nodes], dtype=bool)
        self._is_closed = np.array([bool(zone) and not self._open.get(zone) for zone in of_nodes], dtype=bool)

    def refusals(self, member: Member, _table: NodeTable) -> Sequence[Refusal]:
        """Lent nodes are for tasks that may be revoked, and only while they are lent."""
        refusals = [Refusal(self._is_closed, "revocable zone is closed")]
        if not _is_revocable(member):
            refusals.append(Refusal(self._is_lent, "for revocable tasks only"))
        return refusals

    def scorer(self, member: Member, _table: NodeTable) -> Callable[[Rows], Vector] | None:
        """A task that may be revoked rather goes where only such tasks may go."""
        liked = np.where(self._is_lent & ~self._is_closed, _LIKED, 0.0)
        return liked.__getitem__ if _is_revocable(member) and liked.any() else None

    def preemptable(self, member: Member, candidates: Sequence[Member]) -> list[Member]:
        """A task that must not be evicted itself takes from those that run on nodes of one's own and may be."""
        if member.task.preemptable or _is_revocable(member):
            return []
        own = [m for m in candidates if m.status is TaskStatus.RUNNING and m.task.preemptable and not self._zone(m)]
        return budgets.within(own, follows_volcano=self._follows)

    def overdue(self, running: Sequence[Member]) -> list[Member]:
        """Who has to leave nodes that are not lent any more, once a period.

        Volcano asks the budget of a job anew for each zone that it is in.
        """
        last = self._session.state.shuffled_at
        if last is not None and self._session.now < last + self._period:
            return []
        late = [m for m in running if m.task.preemptable and self._open.get(self._zone(m)) is False]
        if not self._follows:
            return budgets.within(late, follows_volcano=False)
        zones = dict.fromkeys(self._zone(member) for member in late)
        return [m for zone in zones for m in budgets.within(self._in(zone, late), follows_volcano=True)]

    def _in(self, zone: str, members: Sequence[Member]) -> list[Member]:
        return [member for member in members if self._zone(member) == zone]

    def _zone(self, member: Member) -> str:
        row = self._session.table.row_of.get(member.node)
        return "" if row is None else self._of_nodes[row]


def _is_revocable(member: Member) -> bool:
    """Its pod says so, or that it may be evicted."""
    annotations = member.task.annotations
    return annotations.get(_ZONE) == "*" or annotations.get(_PREEMPTABLE, "").lower() == "true"


def _is_starving(gang: Gang) -> bool:
    return not gang.job.preemptable and bool(gang.count[TaskStatus.PENDING])


def _beyond_budget(candidates: Sequence[Member]) -> list[Member]:
    """Those that the budgets which jobs state do not bear to lose."""
    bound = [member for member in candidates if member.status is TaskStatus.RUNNING and budgets.is_stated(member.job)]
    borne = {member.task.uid for member in budgets.within(bound, follows_volcano=False)}
    return [member for member in bound if member.task.uid not in borne]
