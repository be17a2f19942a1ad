"""Cards within a node: parts of a card's memory, whole cards, or virtual cards (`volcano-spec` §5.7).

The node has room for a task only where its cards have. Which cards a task was given is told its pod by annotation with
its bind, and read back from there; they are free again when the task is gone or asked to go. Pods with the labels of
one of the rules (`deviceshare.GPUExclusiveRules`, a list of mappings) never share a virtual card with each other.

Cards that the hardware cuts up (MIG) are given piece by piece (`pieces`).

Beyond Volcano: a node may say by annotation `hekla.io/gpu-links` how strongly each pair of its cards is linked, as a
matrix in JSON. Then the best linked cards are given (`links`), and nodes are liked for the links that they would give,
with weight `deviceshare.LinkWeight` (1). Of a pod on a node that asks for cards and does not say which it has, Volcano
counts none; here it is taken to have those that it would be given.
"""

from collections.abc import Callable

import numpy as np

from hekla.engine.columns import NodeTable, Rows, Vector
from hekla.engine.gangs import Member
from hekla.engine.model import TaskStatus
from hekla.engine.places import ALL, Refusal
from hekla.engine.plugins.deviceshare import notes
from hekla.engine.plugins.deviceshare.asks import NOTHING, Ask, Mode, ask_of, rules_of
from hekla.engine.plugins.deviceshare.cards import CardTable, Part
from hekla.engine.plugins.deviceshare.pieces import geometries_of
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_POLICIES = ("binpack", "spread")


def open_session(session: Session, option: PluginOption) -> None:
    """Give out cards in the one mode that is switched on; without one there is nothing to say."""
    mode = next((mode for mode in Mode if option.truth(f"deviceshare.{mode.value}", default=False)), None)
    if mode is None:
        return
    shared = _Shared(session, option, mode)
    session.on_change.append(shared.hear)
    session.register(Point.TASK_CLASS, option, shared.ask)
    session.register(Point.PREDICATE, option, shared.never)
    session.register(Point.CHANGING_PREDICATE, option, shared.not_now)
    session.register(Point.WIDE_NODE_ORDER, option, shared.scorer)


class _Shared:
    """The cards, and who has which."""

    def __init__(self, session: Session, option: PluginOption, mode: Mode) -> None:
        self._session, self._mode = session, mode
        self._rules = rules_of(option.arguments.get("deviceshare.GPUExclusiveRules"))
        policy = str(option.arguments.get("deviceshare.SchedulePolicy", ""))
        self._policy = policy if policy in _POLICIES else ""
        self._weight = option.number("deviceshare.ScheduleWeight", 0) if self._policy else 0.0
        geometries = geometries_of(option.arguments.get("deviceshare.knownMigGeometries"))
        self._link_weight = option.number("deviceshare.LinkWeight", 1)
        self._table = CardTable(session.table.nodes, mode, self._policy, geometries)
        self._asks: dict[str, Ask] = {}
        self._held: dict[str, list[list[Part]]] = {}
        self._left: dict[str, list[list[Part]]] = {}
        """What those held that are asked to go, in case that they stay after all."""
        for row, residents in enumerate(session.residents):
            for uid in sorted(residents):
                self._seat(residents[uid], row)

    def ask(self, member: Member) -> Ask:
        """What the task asks of cards."""
        ask = self._asks.get(member.task.uid)
        if ask is None:
            ask = self._asks[member.task.uid] = ask_of(member.task, self._mode, self._rules)
        return ask

    def _seat(self, member: Member, row: int) -> None:
        ask = self.ask(member)
        if ask is NOTHING:
            return
        parts = notes.read(member.task.annotations, ask, self._table.cards[row], self._mode)
        if parts is None and not self._session.policy.follows_volcano:
            parts = self._table.choose(ask, row)
        if parts is not None:
            self._hold(member, row, parts)

    def _hold(self, member: Member, row: int, parts: list[list[Part]]) -> None:
        for one in parts:
            self._table.take(row, one, self.ask(member))
        self._held[member.task.uid] = parts

    def hear(self, member: Member, row: int, sign: int) -> None:
        """A task got a place, or gave one back."""
        ask = self.ask(member)
        if ask is NOTHING:
            return
        if sign < 0:
            self._free(member, row)
        elif member.status is TaskStatus.RUNNING:
            if member.task.uid in self._left:
                self._hold(member, row, self._left.pop(member.task.uid))
        elif (parts := self._table.choose(ask, row)) is not None:
            self._hold(member, row, parts)
            self._session.notes[member.task.uid] = notes.written(
                parts, self._table.cards[row], self._session.table.nodes[row].name, self._session.now, self._mode
            )

    def _free(self, member: Member, row: int) -> None:
        uid = member.task.uid
        parts = self._held.pop(uid, None)
        self._session.notes.pop(uid, None)
        for one in parts or ():
            self._table.take(row, one, self.ask(member), -1)
        if parts is not None and member.status is TaskStatus.RELEASING:
            self._left[uid] = parts

    # What plugins are asked.

    def never(self, member: Member, _table: NodeTable) -> list[Refusal]:
        """Nodes whose cards could not serve the task if nobody used them."""
        ask = self.ask(member)
        return [] if ask is NOTHING else [Refusal(~self._table.fits(ask, ALL, when_empty=True), "no such GPU")]

    def not_now(self, member: Member, _table: NodeTable) -> Callable[[Rows], list[Refusal]] | None:
        """Nodes whose cards cannot serve it as they are used now."""
        ask = self.ask(member)

        def refusals(rows: Rows) -> list[Refusal]:
            return [Refusal(~self._table.fits(ask, rows), "no GPU with room", is_final=False)]

        return None if ask is NOTHING else refusals

    def scorer(self, member: Member, _table: NodeTable) -> Callable[[Rows], Vector] | None:
        """How much the cards are liked that a node would give, by the policy and by their links."""
        ask = self.ask(member)
        if ask is NOTHING:
            return None
        by_links = self._link_weight if self._table.has_links and ask.shares[0].count > 1 else 0.0

        def score(rows: Rows) -> Vector:
            total: Vector = np.zeros(len(self._table.cards))[rows]
            total += self._weight * self._table.scores(ask, rows) if self._weight else 0.0
            total += by_links * self._table.link_scores(ask, rows) if by_links else 0.0
            return total

        return _Kept(self._table, score).scores if self._weight or by_links else None


class _Kept:
    """Scores of all rows, reckoned anew only for those whose cards were touched since."""

    def __init__(self, table: CardTable, score: Callable[[Rows], Vector]) -> None:
        self._table, self._score = table, score
        self._scores, self._seen = score(ALL), len(table.changed)

    def scores(self, rows: Rows) -> Vector:
        """Those of these rows."""
        if self._seen < len(self._table.changed):
            changed = np.unique(np.array(self._table.changed[self._seen :], dtype=np.intp))
            self._scores[changed], self._seen = self._score(changed), len(self._table.changed)
        return self._scores[rows]
