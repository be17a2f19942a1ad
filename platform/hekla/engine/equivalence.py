"""Equivalence classes of jobs: what holds for the oldest job of a class holds for all.

Jobs of one queue and owner are equal if they differ only in name and age: no pod is placed, all pods have one role,
class and priority, and the minimum is the same. A thousand such jobs without room are checked once, and those that do
not come up are not even built (`job_table`).
"""

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from itertools import islice
from operator import attrgetter, lt

from hekla.engine.job_info import JobInfo
from hekla.engine.model import PodGroupSpec

_AGE: Callable[[PodGroupSpec], tuple[float, str]] = attrgetter("created_at", "uid")


class EquivalenceClass:
    """Pod groups of equal jobs. `queue`: in which they wait; `template`: stands for those that are not built.

    Lists, no mapping by uid: with a million jobs that costs as much as all else about them.
    """

    __slots__ = ("_groups", "_removed", "_uids", "key", "queue", "template")

    def __init__(self, key: Hashable, queue: str) -> None:
        self.key, self.queue = key, queue
        self.template: JobInfo | None = None
        self._groups: list[PodGroupSpec] = []
        self._removed: set[int] = set()
        """Identities of groups that are still in the list."""
        self._uids: list[str] | None = None
        """The uids, the oldest first; None: to be computed."""

    def __len__(self) -> int:
        return len(self._groups) - len(self._removed)

    def add_all(self, groups: Sequence[PodGroupSpec]) -> None:
        """Add jobs; the order by age is recomputed later."""
        self._drop_removed()
        self._groups += groups
        self._uids = None

    def remove(self, group: PodGroupSpec) -> None:
        """Remove a job, given as the object that was added."""
        self._removed.add(id(group))
        self._uids = None

    def uids(self) -> Sequence[str]:
        """The uids of all jobs, the oldest first."""
        if self._uids is None:
            self._drop_removed()
            if not _is_in_order([group.created_at for group in self._groups]):
                self._groups.sort(key=_AGE)
            self._uids = [group.uid for group in self._groups]
        return self._uids

    def uids_without(self, others: Collection[str]) -> Sequence[str]:
        """The uids of the jobs except `others`, the oldest first."""
        return [uid for uid in self.uids() if uid not in others] if others else self.uids()

    def _drop_removed(self) -> None:
        if self._removed:
            self._groups = [group for group in self._groups if id(group) not in self._removed]
            self._removed.clear()


def _is_in_order(times: list[float]) -> bool:
    """Whether each is later than the one before, as it mostly is: this costs a fifth of sorting them."""
    return all(map(lt, times, islice(times, 1, None)))


class EquivalenceClasses:
    """All equivalence classes of the current jobs."""

    def __init__(self) -> None:
        self._classes: dict[Hashable, EquivalenceClass] = {}

    def __iter__(self) -> Iterator[EquivalenceClass]:
        return iter(self._classes.values())

    def add(self, job: JobInfo) -> None:
        """Add a job, in its state before a session, to its class if it may have equals."""
        job.equivalence_class = found = self._class_of(job)
        if found is not None:
            found.add_all((job.group,))

    def add_unbuilt(self, example: JobInfo, groups: Sequence[PodGroupSpec]) -> JobInfo | None:
        """Add jobs of the same shape as the example. Returns their template; None if they cannot have equals."""
        found = self._class_of(example)
        if found is None:
            return None
        if found.template is None:
            found.template, example.equivalence_class, example.is_template = example, found, True
        found.add_all(groups)
        return found.template

    def remove(self, group: PodGroupSpec, of: EquivalenceClass | None) -> None:
        """Remove a job from its class, if it has one."""
        if of is not None:
            of.remove(group)
            if not of:
                del self._classes[of.key]

    def _class_of(self, job: JobInfo) -> EquivalenceClass | None:
        key = _class_key(job)
        if key is None:
            return None
        if key not in self._classes:
            self._classes[key] = EquivalenceClass(key, job.group.queue)
        return self._classes[key]


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
