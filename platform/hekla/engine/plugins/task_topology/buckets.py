"""Tasks of a job gathered into buckets, each to be placed on one node as far as it goes (`volcano-spec` §5.6)."""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from hekla.engine.columns import Dimensions, NodeTable, Rows, Vector, fits
from hekla.engine.gangs import Gang, Member
from hekla.engine.plugins.task_topology.relations import Relations

_MEBI = 2.0**20


class Bucket:
    """Tasks that want to be together: those that wait, what they ask for, and how many have a place on which node."""

    def __init__(self, index: int, width: int) -> None:
        self.index = index
        self.roles: Counter[str] = Counter()
        self.waiting: dict[str, Member] = {}
        self.placed: Counter[int] = Counter()
        self.request: Vector = np.zeros(width)

    @property
    def size(self) -> int:
        """Tasks with and without a place."""
        return len(self.waiting) + self.placed.total()

    def move(self, member: Member, row: int, sign: int) -> None:
        """A task of it got a place, or gave it back."""
        self.placed[row] += sign
        self.request -= sign * member.request
        if sign > 0:
            self.waiting.pop(member.task.uid, None)
        else:
            self.waiting[member.task.uid] = member

    def too_many(self, member: Member, room: Vector) -> Vector:
        """Per row: how many of the others that wait have to stay away for the rest to fit, in the order of ids."""
        others = [one.request for uid, one in sorted(self.waiting.items()) if uid != member.task.uid]
        left = self.request - np.cumsum([np.zeros_like(self.request), *others], axis=0)
        low, high = np.zeros(len(room), dtype=np.intp), np.full(len(room), len(others), dtype=np.intp)
        while (low < high).any():
            middle = (low + high) // 2
            enough = fits(left[middle], room)
            low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
        return np.minimum(low, len(others)).astype(float)


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
        bucket.roles[member.task.role] += 1
        row = self._table.row_of.get(member.node)
        if row is not None:
            bucket.placed[row] += 1
        else:
            bucket.waiting[member.task.uid] = member
            bucket.request += member.request

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
        score = there[rows] + len(bucket.waiting) - bucket.too_many(member, room)
        return np.where(fits(member.request, room), score, 0.0) / self.largest

    def _counts(self, on: Counter[int]) -> Vector:
        counts = np.zeros(len(self._table))
        for row, count in on.items():
            counts[row] = count
        return counts
