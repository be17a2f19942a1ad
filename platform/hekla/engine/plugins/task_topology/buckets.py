"""Tasks of a job gathered into buckets, each to be placed on one node as far as it goes (`volcano-spec` §5.6)."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable

import numpy as np

from hekla.engine.columns import Dimensions, NodeTable, Rows, Vector, fits
from hekla.engine.gangs import Gang, Member
from hekla.engine.plugins.task_topology.relations import Relations

_MEBI = 2.0**20
Key = tuple[float, float, str]


class Bucket:
    """Tasks that want to be together: those that wait, what they ask for, and how many have a place on which node."""

    def __init__(self, index: int, width: int) -> None:
        self.index, self.size = index, 0
        self.roles: Counter[str] = Counter()
        self.placed: Counter[int] = Counter()
        self.request: Vector = np.zeros(width)
        self._waiting: dict[str, Member] = {}
        self._uids: list[str] = []
        """Who waits, in order."""
        self._turns: dict[str, list[tuple[Key, str]]] = {}
        """Who waits of each role, in the order in which they will be placed."""

    def add(self, member: Member, row: int | None) -> None:
        """One more task: with a place on this row, or without one."""
        self.size += 1
        self.roles[member.task.role] += 1
        if row is not None:
            self.placed[row] += 1
        else:
            self._wait(member)

    def move(self, member: Member, row: int, sign: int) -> None:
        """A task of it got a place, or gave it back to wait for another."""
        self.placed[row] += sign
        if sign < 0:
            self._wait(member)
        elif self._waiting.pop(member.task.uid, None) is not None:
            del self._uids[bisect_left(self._uids, member.task.uid)]
            turns = self._turns[member.task.role]
            del turns[bisect_left(turns, (member.key, member.task.uid))]
            self.request -= member.request

    def _wait(self, member: Member) -> None:
        self._waiting[member.task.uid] = member
        insort(self._uids, member.task.uid)
        insort(self._turns.setdefault(member.task.role, []), (member.key, member.task.uid))
        self.request += member.request

    def next_of(self, role: str) -> str:
        """The id of the task of this role that is placed next; empty: none waits."""
        turns = self._turns.get(role)
        return turns[0][1] if turns else ""

    def together(self, member: Member, room: Vector) -> Vector:
        """Per row: how many of those that wait fit there: one like this, and then the others, the last id first."""
        itself = self.next_of(member.task.role)
        sums, most = [member.request], room.max(axis=0, initial=0.0)
        for uid in reversed(self._uids):
            if not fits(sums[-1], most):
                break
            if uid != itself:
                sums.append(sums[-1] + self._waiting[uid].request)
        totals = np.array(sums)
        low, high = np.zeros(len(room), dtype=np.intp), np.full(len(room), len(sums), dtype=np.intp)
        while (low < high).any():
            middle = (low + high) // 2
            enough = fits(totals[np.minimum(middle, len(sums) - 1)], room)
            low, high = np.where(enough & (low < high), middle + 1, low), np.where(enough, high, middle)
        return low.astype(float)


class JobBuckets:
    """The buckets of one job, and its tasks on each node by role."""

    def __init__(self, gang: Gang, relations: Relations, table: NodeTable, dimensions: Dimensions) -> None:
        self.relations, self._table = relations, table
        self._dimensions = dimensions
        self.buckets: list[Bucket] = []
        self.of: dict[str, Bucket] = {}
        self._roles_on: dict[str, Counter[int]] = {}
        self._fill(gang.members)
        self.largest = max((bucket.size for bucket in self.buckets), default=0)

    # Into buckets.

    def _fill(self, members: Iterable[Member]) -> None:
        """Those with a place first, one bucket a node; then each to where it wants to be most, or to a new one."""
        on_nodes: dict[str, Bucket] = {}
        for member in members:
            if (row := self._table.row_of.get(member.node)) is not None:
                self._roles_on.setdefault(member.task.role, Counter())[row] += 1
        concerned = [member for member in members if self.relations.concern(member.task.role)]
        for member in sorted(concerned, key=self._turn):
            bucket = on_nodes.get(member.node) if member.node else self._best(member.task.role)
            if bucket is None:
                bucket = Bucket(len(self.buckets), len(self._dimensions.names))
                self.buckets.append(bucket)
                if member.node:
                    on_nodes[member.node] = bucket
            self._put(member, bucket)

    def _turn(self, member: Member) -> tuple[bool, str, int, int, str]:
        order, strength = self.relations.rank(member.task.role)
        return not member.node, member.node, -order, -strength, member.task.name

    def _best(self, role: str) -> Bucket | None:
        """The bucket that the role wants to be in most, of equal ones that which asks for least; None: in none."""
        wanted = [(self.relations.affinity(role, bucket.roles), bucket) for bucket in self.buckets]
        wanted = [(affinity, bucket) for affinity, bucket in wanted if affinity >= 0]
        return min(wanted, key=lambda one: (-one[0], self._weight(one[1].request)))[1] if wanted else None

    def _weight(self, request: Vector) -> float:
        """One MiB of memory weighs as much as a thousandth of a core or of a device."""
        scale = [_MEBI if name == "memory" else 1.0 for name in self._dimensions.names]
        return float((request / scale)[self._dimensions.without_pods].sum())

    def _put(self, member: Member, bucket: Bucket) -> None:
        self.of[member.task.uid] = bucket
        bucket.add(member, self._table.row_of.get(member.node))

    # As tasks are placed.

    def move(self, member: Member, row: int, sign: int) -> None:
        """A task of the job got a place, or gave it back."""
        self._roles_on.setdefault(member.task.role, Counter())[row] += sign
        bucket = self.of.get(member.task.uid)
        if bucket is not None:
            bucket.move(member, row, sign)

    def scores(self, member: Member, rows: Rows) -> Vector:
        """Per row: of its bucket those that are there and those that could follow, less whom it does not want there."""
        bucket = self.of[member.task.uid]
        room = self._table.idle[rows] + self._table.releasing[rows]
        there = self._counts(bucket.placed)
        for role in self.relations.disliked(member.task.role):
            there -= self._counts(self._roles_on.get(role, Counter()))
        together = bucket.together(member, room)
        return np.where(together > 0, there[rows] + together, 0.0) / self.largest

    def _counts(self, on: Counter[int]) -> Vector:
        counts = np.zeros(len(self._table))
        for row, count in on.items():
            counts[row] = count
        return counts
