"""Equivalence classes of jobs: what holds for the oldest job of a class holds for all.

Jobs of one queue and owner are equal if they differ only in name and age: no pod is placed, all pods have one role,
class and priority, and the minimum is the same. A thousand such jobs without room are checked once.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter

from hekla.engine.job_info import JobInfo

_AGE = attrgetter("group.created_at", "group.uid")
_UID: Callable[[JobInfo], str] = attrgetter("group.uid")


class EquivalenceClass:
    """Equal jobs by uid. `queue`: the queue in which they wait."""

    __slots__ = ("_in_order", "jobs", "key", "queue")

    def __init__(self, key: Hashable, queue: str) -> None:
        self.key, self.queue = key, queue
        self.jobs: dict[str, JobInfo] = {}
        self._in_order: list[JobInfo] | None = None

    def __len__(self) -> int:
        return len(self.jobs)

    def add_all(self, jobs: Sequence[JobInfo]) -> None:
        """Add jobs; the order by age is recomputed later."""
        self.jobs.update(zip(map(_UID, jobs), jobs, strict=True))
        for job in jobs:
            job.equivalence_class = self
        self._in_order = None

    def remove(self, job: JobInfo) -> None:
        """Remove a job."""
        del self.jobs[job.group.uid]
        self._in_order = None

    def jobs_without(self, others: Collection[str]) -> Sequence[JobInfo]:
        """The jobs except `others`, the oldest first."""
        if self._in_order is None:
            self._in_order = sorted(self.jobs.values(), key=_AGE)
        return [job for job in self._in_order if job.group.uid not in others] if others else self._in_order


class EquivalenceClasses:
    """All equivalence classes of the current jobs."""

    def __init__(self) -> None:
        self._classes: dict[Hashable, EquivalenceClass] = {}

    def __iter__(self) -> Iterator[EquivalenceClass]:
        return iter(self._classes.values())

    def add_all(self, twins: Iterable[Sequence[JobInfo]]) -> None:
        """Add jobs, in their state before a session, to their classes if they may have equals.

        `twins`: jobs of equal shape together. Built pods may have classes of their own, by their labels.
        """
        for equals in chain.from_iterable(map(_apart_if_built, twins)):
            key = _class_key(equals[0])
            if key is None:
                continue
            if key not in self._classes:
                self._classes[key] = EquivalenceClass(key, equals[0].group.queue)
            self._classes[key].add_all(equals)

    def remove(self, job: JobInfo) -> None:
        """Remove a job that was added."""
        equivalence_class, job.equivalence_class = job.equivalence_class, None
        if equivalence_class is not None:
            equivalence_class.remove(job)
            if not equivalence_class:
                del self._classes[equivalence_class.key]


def _apart_if_built(twins: Sequence[JobInfo]) -> Iterable[Sequence[JobInfo]]:
    """The twins without built pods together, the others each alone."""
    built = [job for job in twins if job.built_pods]
    if not built:
        return (twins,)
    others = [job for job in twins if not job.built_pods]
    return (*([job] for job in built), *((others,) if others else ()))


def _class_key(job: JobInfo) -> Hashable | None:
    """The key that equal jobs share; None if the job cannot be in a class."""
    group = job.group
    if job.role is None or job.pending_count != job.size or job.uses_hypernodes or job.is_nominated:
        return None
    shapes = {pod.class_number for pod in job.built_pods} or {kind.number for kind in job.pod_classes}
    priorities = {(spec.priority, spec.never_preempts) for spec in group.pods}
    if len(shapes) != 1 or len(priorities) != 1:
        return None
    least = *group.min_task_member.items(), id(job.min_resources)
    place = group.queue, group.namespace, group.owner, group.priority, job.phase
    return (*place, job.role, job.size, group.min_available, *shapes, *priorities, *least)
