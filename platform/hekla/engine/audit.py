"""Holds what is kept between cycles against what would be built afresh from the same state."""

from collections.abc import Iterator

import numpy as np

from hekla.engine.columns import EPSILON, Vector
from hekla.engine.gangs import Gang
from hekla.engine.sums import Sums
from hekla.engine.world import World

_COLUMNS = ("allocatable", "used", "releasing", "surplus")
_AMOUNTS = ("allocated", "claimed", "request", "minimum")
_FACTS = ("job", "phase", "size", "ready_count", "valid_count", "pending_best_effort", "is_settled", "is_nominated")
_SUMS = ("allocated", "request", "elastic", "inqueue", "claimed")


def differences(world: World) -> list[str]:
    """What is not the same, in words; nothing where all is well. What the last session did is taken back first."""
    world.rewind()
    return list(_Comparison(world, World.of(world.state)).all())


class _Comparison:
    def __init__(self, kept: World, fresh: World) -> None:
        self._kept, self._fresh = kept, fresh
        known = {name: at for at, name in enumerate(kept.dimensions.names)}
        self._same = [known[name] for name in fresh.dimensions.names]
        """The places of the fresh one's resources among those that are known; there may be more of these."""

    def all(self) -> Iterator[str]:
        kept, fresh = self._kept, self._fresh
        for name in ("queues", "refused"):
            if getattr(kept, name) != getattr(fresh, name):
                yield name
        if [*kept.gangs] != [*fresh.gangs] or [*kept.unsettled] != [*fresh.unsettled]:
            yield "which jobs there are"
        yield from self._nodes()
        for uid in kept.gangs.keys() & fresh.gangs.keys():
            yield from (f"job {uid}: {what}" for what in self._gang(kept.gangs[uid], fresh.gangs[uid]))
        yield from self._classes()
        if _standing(kept) != _standing(fresh):
            yield "who stands in which line"
        yield from self._sums()

    def _nodes(self) -> Iterator[str]:
        kept, fresh = self._kept.table, self._fresh.table
        if kept.nodes != fresh.nodes or (kept.listed != fresh.listed).any():
            yield "which nodes there are"
            return
        for name in _COLUMNS:
            mine = getattr(kept, name)
            mine = mine if name == "surplus" else mine[:, self._same]
            if not np.allclose(mine, getattr(fresh, name), atol=EPSILON / 2):
                yield f"what is {name} on the nodes"
        for node, mine, other in zip(kept.nodes, self._kept.residents, self._fresh.residents, strict=True):
            if {m.task.uid: m.status for m in mine.values()} != {m.task.uid: m.status for m in other.values()}:
                yield f"who is on node {node.name}"
        if [domain.rows.tolist() for domain in self._kept.domains.all] != [
            domain.rows.tolist() for domain in self._fresh.domains.all
        ]:
            yield "the network's domains"

    def _gang(self, kept: Gang, fresh: Gang) -> Iterator[str]:
        yield from (name for name in _FACTS if getattr(kept, name) != getattr(fresh, name))
        yield from (name for name in _AMOUNTS if not self._are_equal(getattr(kept, name), getattr(fresh, name)))
        if _counted(kept) != _counted(fresh):
            yield "how many tasks are in which status"
        if any(m.status is not m.task.status or m.node != m.task.node for m in kept.made):
            yield "where its tasks are"

    def _are_equal(self, mine: Vector | None, other: Vector | None) -> bool:
        if mine is None or other is None:
            return mine is other
        return bool(np.allclose(mine[self._same], other, atol=EPSILON / 2))

    def _classes(self) -> Iterator[str]:
        """Tasks are of one class here where they are there."""
        pairs = {
            (mine, other)
            for uid in self._kept.gangs.keys() & self._fresh.gangs.keys()
            for mine, other in zip(_shapes(self._kept.gangs[uid]), _shapes(self._fresh.gangs[uid]), strict=False)
        }
        if len({mine for mine, _ in pairs}) != len(pairs) or len({other for _, other in pairs}) != len(pairs):
            yield "which tasks are of one class"

    def _sums(self) -> Iterator[str]:
        mine, other = self._kept.ledger.of_queue, self._fresh.ledger.of_queue
        if mine.keys() != other.keys():
            yield "which queues have jobs"
        for name in mine.keys() & other.keys():
            if mine[name].jobs != other[name].jobs or not self._hold_the_same(mine[name], other[name]):
                yield f"the sums of queue {name}"

    def _hold_the_same(self, mine: Sums, other: Sums) -> bool:
        return all(self._are_equal(getattr(mine, name), getattr(other, name)) for name in _SUMS)


def _counted(gang: Gang) -> dict[str, int]:
    return {str(status): count for status, count in gang.count.items() if count}


def _standing(world: World) -> set[frozenset[str]]:
    return {frozenset(line.gangs) for line in world.lines}


def _shapes(gang: Gang) -> list[int]:
    return [member.shape for member in gang.members]
