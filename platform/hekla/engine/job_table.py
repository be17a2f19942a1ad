"""All jobs of a cluster by key. Of equal jobs only those are built that come up: most of a million are only counted.

As long as a job is not built, the template of its class (`equivalence`) stands for it: a job with the same queue,
owner, phase, counts and amounts, but with the pod group of another.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any

from hekla.engine.job_info import JobInfo, PodClasses
from hekla.engine.model import PodGroupSpec


class JobTable:
    """The jobs by key, and `groups`, their pod groups by key in the order of the state."""

    def __init__(self, pod_classes: PodClasses) -> None:
        self.groups: dict[Hashable, PodGroupSpec] = {}
        self._pod_classes = pod_classes
        self._jobs: dict[Hashable, JobInfo] = {}
        """The jobs, or the templates that stand for them."""
        self._most: JobInfo | None = None
        """The template for all jobs that are not in `_jobs`: an entry for each of a million would cost too much."""

    def __getitem__(self, key: Hashable) -> JobInfo:
        """The job, which is built now if it was not yet. Raises KeyError."""
        job = self._jobs.get(key) or self._most
        if job is None or key not in self.groups:
            raise KeyError(key)
        if job.is_template:
            job = self._jobs[key] = JobInfo(self.groups[key], self._pod_classes, job)
        return job

    def __setitem__(self, key: Hashable, job: JobInfo) -> None:
        self._jobs[key] = job

    def add_unbuilt(self, keys: Iterable[Hashable], count: int, template: JobInfo) -> None:
        """Add so many jobs that the template stands for. Those of other jobs in `groups` must follow."""
        if self._most is None and not self._jobs and 2 * count > len(self.groups):
            self._most = template
        else:
            self._jobs.update(zip(keys, repeat(template)))

    def pop(self, key: Hashable) -> JobInfo:
        """Remove a job; `groups` without it must follow. Returns it, or the template that stood for it."""
        job = self._jobs.pop(key, self._most)
        if job is None:
            raise KeyError(key)
        return job

    def stand_ins(self, keys: Iterable[Hashable]) -> Iterator[JobInfo]:
        """These jobs, or the templates that stand for them."""
        if self._most is None:
            return map(self._jobs.__getitem__, keys)
        return map(self._jobs.get, keys, repeat(self._most))

    def all_stand_ins(self) -> Collection[JobInfo]:
        """Each job that is built, and each template that stands for some, once."""
        most = () if self._most is None or len(self._jobs) >= len(self.groups) else (self._most,)
        return dict.fromkeys((*most, *self._jobs.values()))

    def without(self, others: Collection[JobInfo]) -> "Jobs":
        """The jobs except these of `all_stand_ins`."""
        if not others:
            return Jobs(self, self.groups)
        every = zip(self.groups, self.stand_ins(self.groups), strict=True)
        return Jobs(self, dict.fromkeys(key for key, job in every if job not in others))


class Jobs(Mapping[str, JobInfo]):
    """Some jobs of a table by uid, in the order of the state. A job is built on its first use. `uids`: those of all."""

    def __init__(self, table: JobTable, uids: Collection[Any]) -> None:
        self._table, self.uids = table, uids

    def __getitem__(self, uid: str) -> JobInfo:
        if uid not in self.uids:
            raise KeyError(uid)
        return self._table[uid]

    def __contains__(self, uid: object) -> bool:
        return uid in self.uids

    def __iter__(self) -> Iterator[str]:
        return iter(self.uids)

    def __len__(self) -> int:
        return len(self.uids)

    def stand_ins(self) -> Iterator[JobInfo]:
        """The jobs, or the templates that stand for them: enough for all that equal jobs have in common."""
        return self._table.stand_ins(self.uids)
