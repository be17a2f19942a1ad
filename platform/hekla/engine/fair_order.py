"""Fair order within a queue: dominant resource fairness among tenants, and among the people of each tenant."""

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from hekla.domain.queue_settings import JobOrder
from hekla.engine.columns import Vector, share
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.priority_queue import RankedQueue

Person = tuple[str, str, str]
"""Queue, namespace and owner."""
Share = tuple[float, float]
"""The dominant shares of a tenant and of one of its people."""


class FairShares:
    """What tenants and people hold in the queues with fair order; allocated and pipelined pods count."""

    def __init__(self, total: Vector) -> None:
        self._total = total
        self._queues: set[str] = set()
        self._held: dict[Sequence[str], Vector] = {}
        self._shares: dict[Sequence[str], float] = {}

    def include(self, queues: Collection[str], jobs: Iterable[JobInfo]) -> None:
        """Count what the jobs of these queues hold too."""
        self._queues |= set(queues)
        own = (job for job in jobs if job.group.queue in queues)
        self.add_all(own, lambda job: (job.claimed,), lambda claimed: claimed)

    def add_all(
        self,
        jobs: Iterable[JobInfo],
        rows: Callable[[JobInfo], tuple[Vector, ...]],
        amount: Callable[..., Vector],
    ) -> None:
        """Count for each job an amount that follows from these rows: equal jobs mostly share them, so few differ."""
        counts: Counter[tuple[Person, tuple[int, ...]]] = Counter()
        by_key: dict[tuple[Person, tuple[int, ...]], tuple[Vector, ...]] = {}
        for job in jobs:
            if job.group.queue in self._queues:
                found = rows(job)
                key = person_of(job), tuple(map(id, found))
                counts[key] += 1
                by_key[key] = found
        for key, count in counts.items():
            self._add(key[0], count * amount(*by_key[key]))

    def add(self, job: JobInfo, amount: Vector) -> None:
        """Count an amount for the owner of the job; no effect for other queues."""
        if job.group.queue in self._queues:
            self._add(person_of(job), amount)

    def update(self, pod: PodInfo, _row: int, sign: int) -> None:
        """Count a placement (sign 1), or its end."""
        self.add(pod.job, sign * pod.request)

    def of(self, person: Person) -> Share:
        """The present shares."""
        return self._share(person[:2]), self._share(person)

    def copy(self) -> "FairShares":
        """The same shares, to count more with them."""
        other = copy(self)
        other._held, other._shares = dict(self._held), dict(self._shares)
        return other

    def _add(self, person: Person, amount: Vector) -> None:
        for holder in (person[:2], person):
            held = self._held.get(holder)
            self._held[holder] = amount if held is None else held + amount
            self._shares.pop(holder, None)

    def _share(self, holder: Sequence[str]) -> float:
        if holder not in self._shares:
            held = self._held.get(holder)
            self._shares[holder] = 0.0 if held is None else share(held, self._total)
        return self._shares[holder]


def person_of(job: JobInfo) -> Person:
    """The holder of what the job uses."""
    return job.group.queue, job.group.namespace, job.group.owner


class FairQueue:
    """The jobs of one queue: each time the first job of the person whose shares are the smallest.

    If shares are equal, ranks decide. Shares are compared when a person comes up, so they may grow while jobs wait.
    """

    def __init__(
        self,
        shares: FairShares,
        rank: Callable[[JobInfo], Any],
        job_of: Callable[[str], JobInfo],
        items: Iterable[JobInfo] = (),
        classes: Iterable[Sequence[str]] = (),
    ) -> None:
        self._shares, self._rank, self._job_of = shares, rank, job_of
        self._queues: dict[Person, RankedQueue[JobInfo]] = {}
        own: dict[Person, tuple[list[JobInfo], list[Sequence[str]]]] = {}
        for job in items:
            own.setdefault(person_of(job), ([], []))[0].append(job)
        for uids in classes:  # equal jobs have one owner
            own.setdefault(person_of(job_of(uids[0])), ([], []))[1].append(uids)
        self._queues = {person: RankedQueue(rank, job_of, *jobs) for person, jobs in own.items()}
        self._turns = [self._turn(person) for person in self._queues]
        heapq.heapify(self._turns)
        self._last: Person | None = None
        """Whose job came out last: not among the turns until the next job is wanted."""

    def __len__(self) -> int:
        """0 if the queue is empty; else at most the number of jobs, since a class counts as one."""
        return len(self._turns) + (0 if self._last is None else len(self._queues[self._last]))

    def push(self, item: JobInfo) -> None:
        """Add a job."""
        person = person_of(item)
        jobs = self._queues.setdefault(person, RankedQueue(self._rank, self._job_of))
        jobs.push(item)
        if len(jobs) == 1 and person != self._last:
            heapq.heappush(self._turns, self._turn(person))

    def pop(self) -> JobInfo:
        """Remove and return the first job. Raises IndexError if there is none."""
        if self._last is not None and len(self._queues[self._last]):
            heapq.heappush(self._turns, self._turn(self._last))
        while True:
            turn = heapq.heappop(self._turns)
            if (now := self._turn(turn[-1])) <= turn:
                break
            heapq.heappush(self._turns, now)
        self._last = turn[-1]
        return self._queues[self._last].pop()

    def pop_equivalent(self) -> Sequence[str]:
        """Remove the rest of the class of the last popped job. Returns its uids."""
        return () if self._last is None else self._queues[self._last].pop_equivalent()

    def _turn(self, person: Person) -> tuple[Share, Any, Person]:
        return self._shares.of(person), self._queues[person].first_rank(), person


@dataclass
class JobOrders:
    """The order of jobs by queue, for queues that have one of their own (`job_order`).

    `fair_shares`: what people hold in the queues with fair order; None if no queue has it.
    """

    by_queue: dict[str, JobOrder] = field(default_factory=dict)
    fair_shares: FairShares | None = None
