"""Buckets: pods of a job to place on one node as far as possible (`volcano-spec` §5.6)."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable

import numpy as np

from hekla.engine.columns import Dimensions, NodeTable, Rows, Vector, fits
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.plugins.task_topology.relations import Relations

_MEBI = 2.0**20
Key = tuple[float, float, str]


class Bucket:
    """Pods with affinity to each other: the pending ones, their request, and the number of placed ones by row."""

    def __init__(self, index: int, width: int) -> None:
        self.index, self.size = index, 0
        self.roles: Counter[str] = Counter()
        self.placed: Counter[int] = Counter()
        self.request: Vector = np.zeros(width)
        self._waiting: dict[str, PodInfo] = {}
        self._uids: list[str] = []
        """The uids of pending pods, sorted."""
        self._turns: dict[str, list[tuple[Key, str]]] = {}
        """The pending pods of each role, in the order of placement."""

    def add(self, pod: PodInfo, row: int | None) -> None:
        """Add a pod that is placed on this row, or pending if it is None."""
        self.size += 1
        self.roles[pod.spec.role] += 1
        if row is not None:
            self.placed[row] += 1
        else:
            self._wait(pod)

    def move(self, pod: PodInfo, row: int, sign: int) -> None:
        """Update the bucket after its pod was placed (sign 1), or removed to wait again (-1)."""
        self.placed[row] += sign
        if sign < 0:
            self._wait(pod)
        elif self._waiting.pop(pod.spec.uid, None) is not None:
            del self._uids[bisect_left(self._uids, pod.spec.uid)]
            turns = self._turns[pod.spec.role]
            del turns[bisect_left(turns, (pod.order_key, pod.spec.uid))]
            self.request -= pod.request

    def _wait(self, pod: PodInfo) -> None:
        self._waiting[pod.spec.uid] = pod
        insort(self._uids, pod.spec.uid)
        insort(self._turns.setdefault(pod.spec.role, []), (pod.order_key, pod.spec.uid))
        self.request += pod.request

    def next_of(self, role: str) -> str:
        """The uid of the role's next pod to place; empty if none is pending."""
        turns = self._turns.get(role)
        return turns[0][1] if turns else ""

    def together(self, pod: PodInfo, room: Vector) -> Vector:
        """Per row: how many pending pods fit there: first one like this, then the others, the last uid first."""
        itself = self.next_of(pod.spec.role)
        sums, most = [pod.request], room.max(axis=0, initial=0.0)
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
    """The buckets of one job, and its pods on each row by role."""

    def __init__(self, job: JobInfo, relations: Relations, table: NodeTable, dimensions: Dimensions) -> None:
        self.relations, self._table = relations, table
        self._dimensions = dimensions
        self.buckets: list[Bucket] = []
        self.of: dict[str, Bucket] = {}
        self._roles_on: dict[str, Counter[int]] = {}
        self._fill(job.pods)
        self.largest = max((bucket.size for bucket in self.buckets), default=0)

    # Filling.

    def _fill(self, pods: Iterable[PodInfo]) -> None:
        """Put placed pods first, one bucket per node; then each pending pod into its best bucket, or a new one."""
        on_nodes: dict[str, Bucket] = {}
        for pod in pods:
            if (row := self._table.row_of.get(pod.node)) is not None:
                self._roles_on.setdefault(pod.spec.role, Counter())[row] += 1
        concerned = [pod for pod in pods if self.relations.concern(pod.spec.role)]
        for pod in sorted(concerned, key=self._turn):
            bucket = on_nodes.get(pod.node) if pod.node else self._best(pod.spec.role)
            if bucket is None:
                bucket = Bucket(len(self.buckets), len(self._dimensions.names))
                self.buckets.append(bucket)
                if pod.node:
                    on_nodes[pod.node] = bucket
            self._put(pod, bucket)

    def _turn(self, pod: PodInfo) -> tuple[bool, str, int, int, str]:
        order, strength = self.relations.rank(pod.spec.role)
        return not pod.node, pod.node, -order, -strength, pod.spec.name

    def _best(self, role: str) -> Bucket | None:
        """The bucket with the highest affinity to the role, then the smallest request; None if all are negative."""
        wanted = [(self.relations.affinity(role, bucket.roles), bucket) for bucket in self.buckets]
        wanted = [(affinity, bucket) for affinity, bucket in wanted if affinity >= 0]
        return min(wanted, key=lambda one: (-one[0], self._weight(one[1].request)))[1] if wanted else None

    def _weight(self, request: Vector) -> float:
        """The weight of a request: 1 MiB of memory counts as much as a thousandth of a core or of a device."""
        scale = [_MEBI if name == "memory" else 1.0 for name in self._dimensions.names]
        return float((request / scale)[self._dimensions.without_pods].sum())

    def _put(self, pod: PodInfo, bucket: Bucket) -> None:
        self.of[pod.spec.uid] = bucket
        bucket.add(pod, self._table.row_of.get(pod.node))

    # Placements.

    def move(self, pod: PodInfo, row: int, sign: int) -> None:
        """Update the counts after a pod of the job was placed (sign 1) or removed (-1)."""
        self._roles_on.setdefault(pod.spec.role, Counter())[row] += sign
        bucket = self.of.get(pod.spec.uid)
        if bucket is not None:
            bucket.move(pod, row, sign)

    def scores(self, pod: PodInfo, rows: Rows) -> Vector:
        """Per row: pods of the bucket there, plus pods that could follow, minus pods of roles with anti-affinity.

        Divided by the size of the largest bucket; 0 if the pod itself does not fit.
        """
        bucket = self.of[pod.spec.uid]
        room = self._table.idle[rows] + self._table.releasing[rows]
        there = self._counts(bucket.placed)
        for role in self.relations.disliked(pod.spec.role):
            there -= self._counts(self._roles_on.get(role, Counter()))
        together = bucket.together(pod, room)
        return np.where(together > 0, there[rows] + together, 0.0) / self.largest

    def _counts(self, on: Counter[int]) -> Vector:
        counts = np.zeros(len(self._table))
        for row, count in on.items():
            counts[row] = count
        return counts
