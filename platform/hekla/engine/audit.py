"""Compares the scheduler cache with one built afresh from the same state."""

from collections.abc import Iterator

import numpy as np

from hekla.engine.columns import EPSILON, Vector
from hekla.engine.job_info import JobInfo
from hekla.engine.scheduler_cache import SchedulerCache

_COLUMNS = ("allocatable", "used", "releasing", "nonzero_surplus")
_AMOUNTS = ("allocated", "claimed", "request", "min_resources")
_FACTS = ("phase", "size", "ready_count", "valid_count", "pending_best_effort", "is_settled", "is_nominated")
_SUMS = ("allocated", "request", "elastic", "inqueue", "claimed")


def differences(cache: SchedulerCache) -> list[str]:
    """The differences in words; empty if there are none. Rolls back the last session first."""
    cache.roll_back()
    return list(_Comparison(cache, SchedulerCache.of(cache.state)).all())


class _Comparison:
    def __init__(self, cached: SchedulerCache, fresh: SchedulerCache) -> None:
        self._cached, self._fresh = cached, fresh
        known = {name: at for at, name in enumerate(cached.dimensions.names)}
        self._same = [known[name] for name in fresh.dimensions.names]
        """The fresh dimensions as columns of the cached ones, which may be more."""
        self._groups = {group.uid: group for group in cached.state.jobs}

    def all(self) -> Iterator[str]:
        cached, fresh = self._cached, self._fresh
        for name in ("queues", "refused"):
            if getattr(cached, name) != getattr(fresh, name):
                yield name
        if [*cached.jobs] != [*fresh.jobs] or [*cached.unsettled_jobs] != [*fresh.unsettled_jobs]:
            yield "the set of jobs"
        yield from self._nodes()
        for uid, mine, other in self._pairs():
            yield from (f"job {uid}: {what}" for what in self._job(mine, other))
        yield from self._classes()
        if _class_members(cached) != _class_members(fresh):
            yield "the members of the equivalence classes"
        yield from self._sums()

    def _nodes(self) -> Iterator[str]:
        cached, fresh = self._cached.table, self._fresh.table
        if cached.nodes != fresh.nodes or (cached.state_order != fresh.state_order).any():
            yield "the set of nodes"
            return
        for name in _COLUMNS:
            mine = getattr(cached, name)
            mine = mine if name == "nonzero_surplus" else mine[:, self._same]
            if not _are_close(mine, getattr(fresh, name)):
                yield f"the column {name} of the nodes"
        for node, mine, other in zip(cached.nodes, self._cached.node_pods, self._fresh.node_pods, strict=True):
            if {m.spec.uid: m.status for m in mine.values()} != {m.spec.uid: m.status for m in other.values()}:
                yield f"the pods on node {node.name}"
        if [hypernode.rows.tolist() for hypernode in self._cached.hypernodes.all] != [
            hypernode.rows.tolist() for hypernode in self._fresh.hypernodes.all
        ]:
            yield "the network topology"

    def _pairs(self) -> Iterator[tuple[str, JobInfo, JobInfo]]:
        """The jobs of both, or what stands for them: the comparison builds none."""
        mine, other = (dict(zip(one.jobs, one.jobs.stand_ins(), strict=True)) for one in (self._cached, self._fresh))
        return ((uid, mine[uid], other[uid]) for uid in mine.keys() & other.keys())

    def _job(self, cached: JobInfo, fresh: JobInfo) -> Iterator[str]:
        yield from (name for name in _FACTS if getattr(cached, name) != getattr(fresh, name))
        yield from (name for name in _AMOUNTS if not self._are_equal(getattr(cached, name), getattr(fresh, name)))
        if not cached.is_template and cached.group != self._groups[cached.group.uid]:
            yield "its pod group"
        if _counted(cached) != _counted(fresh):
            yield "the number of pods by status"
        if any(m.status is not m.spec.status or m.node != m.spec.node for m in cached.built_pods):
            yield "status or node of its pods"

    def _are_equal(self, mine: Vector | None, other: Vector | None) -> bool:
        if mine is None or other is None:
            return mine is other
        return _are_close(mine[self._same], other)

    def _classes(self) -> Iterator[str]:
        """Two pods must share a class in both or in neither."""
        pairs = {
            numbers
            for _uid, mine, other in self._pairs()
            for numbers in zip(_shapes(mine), _shapes(other), strict=False)
        }
        if len({mine for mine, _ in pairs}) != len(pairs) or len({other for _, other in pairs}) != len(pairs):
            yield "the equivalence class of its pods"

    def _sums(self) -> Iterator[str]:
        mine, other = self._cached.queue_totals.by_queue, self._fresh.queue_totals.by_queue
        if mine.keys() != other.keys():
            yield "the queues with jobs"
        for name in mine.keys() & other.keys():
            pairs = ((getattr(mine[name], one), getattr(other[name], one)) for one in _SUMS)
            if mine[name].jobs != other[name].jobs or not all(self._are_equal(*pair) for pair in pairs):
                yield f"the sums of queue {name}"


def _are_close(mine: Vector, other: Vector) -> bool:
    """Nearly always they are equal, which is found in a tenth of the time."""
    return np.array_equal(mine, other) or bool(np.allclose(mine, other, atol=EPSILON / 2))


def _counted(job: JobInfo) -> dict[str, int]:
    return {str(status): count for status, count in job.count_by_status.items() if count}


def _class_members(cache: SchedulerCache) -> set[frozenset[str]]:
    return {frozenset(one.uids()) for one in cache.equivalence_classes}


def _shapes(job: JobInfo) -> list[int]:
    return [pod.class_number for pod in job.built_pods] or [kind.number for kind in job.pod_classes]
