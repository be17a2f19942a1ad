"""Queues and their groups of machines: by the label `volcano.sh/nodegroup-name` of nodes (`volcano-spec` §5.5).

Arguments: `strict` (true; with false a queue without affinity may use machines without a group),
`enablePreferredOrder` (false; with true the first preferred group counts most). With the switch `enableHierarchy` a
queue without affinity has that of its nearest ancestor that has one. A queue's annotation
`volcano.sh/nodegroup-resource-limits` bounds what it may hold in each group: `{"group": {"cpu": "4"}}`.

In Volcano a group that should rather be avoided may be used even where it must not, and a queue that only names groups
to avoid may use none at all. Here what must not be used is not used, and such a queue may use all the others.
"""

import json
from collections.abc import Callable, Sequence

import numpy as np

from hekla.domain.resources import InvalidQuantity, Resources
from hekla.engine.columns import EPSILON, Mask, NodeTable, Rows, Vector
from hekla.engine.gangs import ALLOCATED, Member
from hekla.engine.model import NodeGroupAffinity, Queue
from hekla.engine.places import Refusal
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session, infinite_where_absent

GROUP = "volcano.sh/nodegroup-name"
LIMITS = "volcano.sh/nodegroup-resource-limits"
_REQUIRED, _PREFERRED, _AVOIDED = 100.0, 50.0, -1.0


def open_session(session: Session, option: PluginOption) -> None:
    """Refuse and score groups, by queue."""
    groups = _Groups(session.table)
    inherits = option.switches.get("enableHierarchy", False)
    is_strict = option.truth("strict", default=True)
    in_order = option.truth("enablePreferredOrder", default=False)
    follows = session.policy.follows_volcano

    def affinity(member: Member) -> NodeGroupAffinity | None:
        return _affinity(session, session.queues[member.job.job.queue], inherits=inherits)

    def refuse(member: Member, _table: NodeTable) -> list[Refusal]:
        wish = affinity(member)
        if wish is None:
            refusals = [Refusal(~groups.none, "node group affinity not specified")]
            return [*refusals, Refusal(groups.none, "node group label not found")] if is_strict else refusals
        outside = groups.mask(lambda group: not _may_use(wish, group, follows=follows)) & ~groups.none
        reason = "node does not satisfy the node group affinity"
        return [Refusal(groups.none, "node group label not found"), Refusal(outside, reason)]

    def score(member: Member, _table: NodeTable, rows: Rows) -> Vector:
        wish = affinity(member)
        if wish is None:
            return np.zeros(len(groups.of[rows]))
        return groups.values(lambda group: _score(wish, group, in_order=in_order))[rows]

    session.register(Point.TASK_CLASS, option, lambda member: member.job.job.queue)
    session.register(Point.PREDICATE, option, refuse)
    session.register(Point.NODE_ORDER, option, score)
    _open_limits(session, option, groups)


class _Groups:
    """The groups of all rows, as numbers; a row without one has the number of the empty name."""

    def __init__(self, table: NodeTable) -> None:
        names = [node.labels.get(GROUP, "") for node in table.nodes]
        self.names = sorted({"", *names})
        self.number = {name: at for at, name in enumerate(self.names)}
        self.of = np.array([self.number[name] for name in names], dtype=np.intp)
        self.none: Mask = self.of == self.number[""]

    def values(self, value: Callable[[str], float]) -> Vector:
        """A value a row, by its group."""
        return np.array([value(name) for name in self.names])[self.of]

    def mask(self, holds: Callable[[str], bool]) -> Mask:
        """The rows of whose group it holds."""
        return np.array([holds(name) for name in self.names])[self.of]


def _affinity(session: Session, queue: Queue, *, inherits: bool) -> NodeGroupAffinity | None:
    seen: set[str] = set()
    while queue.affinity is None and inherits and queue.parent in session.queues and queue.parent not in seen:
        seen.add(queue.parent)
        queue = session.queues[queue.parent]
    return queue.affinity


def _may_use(wish: NodeGroupAffinity, group: str, *, follows: bool) -> bool:
    is_wanted = group in wish.required or group in wish.preferred
    if follows:
        return group in wish.anti_preferred or (is_wanted and group not in wish.anti_required)
    is_open = not wish.required and not wish.preferred
    return group not in wish.anti_required and (is_wanted or is_open or group in wish.anti_preferred)


def _score(wish: NodeGroupAffinity, group: str, *, in_order: bool) -> float:
    score = _REQUIRED if group in wish.required else 0.0
    if group in wish.preferred:
        count = len(wish.preferred)
        score += _PREFERRED * ((count - wish.preferred.index(group)) / count if in_order else 1)
    return score + (_AVOIDED if group in wish.anti_preferred else 0.0)


# Bounds of a queue in a group.


def _open_limits(session: Session, option: PluginOption, groups: _Groups) -> None:
    limits = {
        name: _limits(session, queue, groups) for name, queue in session.queues.items() if LIMITS in queue.annotations
    }
    held = {name: np.zeros((len(groups.names), len(session.total))) for name in limits}
    if not limits:
        return
    for gang in session.gangs.values():
        for member in gang.members:
            if gang.job.queue in held and member.status in ALLOCATED and member.node in session.table.row_of:
                held[gang.job.queue][groups.of[session.table.row_of[member.node]]] += member.request

    def follow(member: Member, row: int, sign: int) -> None:
        if member.job.job.queue in held:
            held[member.job.job.queue][groups.of[row]] += sign * member.request

    def refuse(member: Member, table: NodeTable) -> Callable[[], Sequence[Refusal]] | None:
        name = member.job.job.queue
        if name not in limits:
            return None
        bounds = limits[name]
        if bounds is None:
            everywhere = np.ones(len(table), dtype=bool)
            return lambda: [Refusal(everywhere, "node group resource limit annotation invalid")]

        def over() -> Sequence[Refusal]:
            is_over: Mask = np.any(held[name] + member.request >= bounds + EPSILON, axis=1)
            return [Refusal(is_over[groups.of], "node group resource limit exceeded")]

        return over

    session.on_change.append(follow)
    session.register(Point.WIDE_PREDICATE, option, refuse)


def _limits(session: Session, queue: Queue, groups: _Groups) -> Vector | None:
    """A row of bounds a group, infinite where none was named. None: the annotation makes no sense."""
    bounds = np.full((len(groups.names), len(session.total)), np.inf)
    try:
        written = {name: Resources.parse(amounts) for name, amounts in json.loads(queue.annotations[LIMITS]).items()}
    except (ValueError, TypeError, AttributeError, InvalidQuantity):
        return None
    for name, amounts in written.items():
        if name in groups.number:
            bounds[groups.number[name]] = infinite_where_absent(session, amounts)
    return bounds
