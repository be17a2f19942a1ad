"""A week of mixed jobs: predicts the start of each pending job, and compares it with the start that follows.

Six people share two queues. Each submits jobs of a few sizes, by day more than by night, and each kind of job has run
times of its own. What a job really takes is drawn at its submission; predictions know only the jobs that have ended.
"""

import heapq
import math
import random
from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hekla.apps.jobs.models import Job
from hekla.bench.explanations.world import MONDAY, ExplainedCluster, cluster, job_spec
from hekla.domain.jobspec import JobSpec
from hekla.engine.model import QueueSpec
from hekla.simulation import eta
from hekla.simulation.eta import Eta
from hekla.simulation.runtimes import RunTimes, key_of

_PEOPLE = 6
_MACHINES = 3
_MACHINE = {"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": "8", "pods": "110"}
_KINDS = (
    # name, pods, GPUs of a pod, CPUs of a pod, median minutes, spread of the logarithm, weight, limit in minutes
    ("debug", 1, 1, 2, 12, 0.5, 5, 60),
    ("evaluate", 1, 1, 4, 35, 0.4, 4, 0),
    ("tune", 1, 4, 8, 90, 0.5, 3, 0),
    ("train", 2, 8, 24, 240, 0.4, 1, 720),
    ("prepare", 4, 0, 6, 25, 0.6, 2, 0),
)
_JOBS_PER_HOUR = 3.2
_WARM_UP = 1 / 7
"""The starts of jobs in this first part are not predicted: nothing has ended yet."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job to submit at a time, and how long it really runs."""

    at: datetime
    spec: JobSpec
    owner: int
    runs: timedelta


@dataclass
class WeekResult:
    """How many jobs waited, how many starts were predicted, and how many of them fell into the range."""

    jobs: int = 0
    waited: int = 0
    predicted: int = 0
    held: int = 0
    early: int = 0
    widths: list[float] = field(default_factory=list)
    """Hours from the beginning to the end of each range."""

    @property
    def share(self) -> float:
        """The share of ranges that held."""
        return self.held / self.predicted if self.predicted else 1.0

    def as_data(self) -> dict[str, float]:
        """The counts, the share, and the median length of the ranges in hours."""
        counts = {name: getattr(self, name) for name in ("jobs", "waited", "predicted", "held", "early")}
        return counts | {"share": self.share, "hours": self.widths[len(self.widths) // 2] if self.widths else 0.0}

    def count(self, found: Eta, started: datetime) -> None:
        """Compare a range with the real start."""
        self.predicted += 1
        self.held += found.earliest <= started <= found.latest
        self.early += started < found.earliest
        insort(self.widths, (found.latest - found.earliest).total_seconds() / 3600)


def arrivals(dice: random.Random, days: float) -> Iterator[Arrival]:
    """Mixed jobs of several people, more by day than by night."""
    at, number = MONDAY, 0
    while True:
        is_day = 8 <= at.hour < 20 and at.weekday() < 5  # noqa: PLR2004  (hours and days of work)
        at += timedelta(hours=dice.expovariate(_JOBS_PER_HOUR * (1.5 if is_day else 0.4)))
        if at > MONDAY + timedelta(days=days):
            return
        owner = dice.randint(1, _PEOPLE)
        kind = dice.choices(_KINDS, [one[6] for one in _KINDS])[0]
        for _ in range(dice.choice((1, 1, 1, 4)) if kind[0] in ("evaluate", "debug") else 1):
            number += 1
            yield _arrival(dice, at, number, owner, kind)


def _arrival(dice: random.Random, at: datetime, number: int, owner: int, kind: tuple) -> Arrival:  # type: ignore[type-arg]
    name, pods, gpus, cpus, median, spread, _weight, limit = kind
    amounts = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    minutes = median * (0.6 + 0.2 * owner) * math.exp(dice.gauss(0, spread))
    minutes = min(minutes, limit) if limit else minutes
    fields = {"active_deadline_seconds": limit * 60} if limit else {}
    spec = job_spec(
        f"{name}-{number}",
        pods,
        cpu=str(cpus),
        resources={"memory": "8Gi", **amounts},
        command=[name, str(owner)],
        kind="training",
        queue="research" if owner % 2 else "product",
        **fields,
    )
    return Arrival(at, spec, owner, timedelta(minutes=minutes))


class Week:
    """Runs the jobs of a week, and predicts the start of each that waits."""

    def __init__(self, seed: int, days: float) -> None:
        queues = QueueSpec("research", weight=2), QueueSpec("product", weight=1)
        self._world = ExplainedCluster(cluster(*[_MACHINE] * _MACHINES, queues=queues))
        self._predicted_from = MONDAY + timedelta(days=days * _WARM_UP)
        dice = random.Random(seed)  # noqa: S311  (no secret)
        self._coming = list(arrivals(dice, days))[::-1]
        self._ends: list[tuple[datetime, str]] = []
        self._runs: dict[str, timedelta] = {}
        self._waiting: dict[str, Eta | None] = {}
        self._seconds: dict[object, list[float]] = {}
        self._result = WeekResult()

    def run(self) -> WeekResult:
        """Submit and end all jobs."""
        while self._coming or self._ends:
            if self._coming and (not self._ends or self._coming[-1].at <= self._ends[0][0]):
                self._submit(self._coming.pop())
            else:
                at, uid = heapq.heappop(self._ends)
                self._learn(self._world.rows[uid], self._runs[uid].total_seconds())
                self._world.end(self._world.rows[uid], at=at)
            self._note_starts()
        return self._result

    def _submit(self, one: Arrival) -> None:
        self._world.course.now = one.at
        job = self._world.submit(one.spec, owner=one.owner)
        uid = str(job.pk)
        self._runs[uid], self._result.jobs = one.runs, self._result.jobs + 1
        self._waiting[uid] = None
        if not self._world.has_started(job) and one.at >= self._predicted_from:
            self._result.waited += 1
            times = RunTimes(self._seconds)  # type: ignore[arg-type]
            self._waiting[uid] = eta.ranges(self._world.course.fork, [uid], times, one.at).get(uid)

    def _note_starts(self) -> None:
        now = self._world.course.now
        for uid in [uid for uid in self._waiting if self._world.course.has_started(uid)]:
            found = self._waiting.pop(uid)
            heapq.heappush(self._ends, (now + self._runs[uid], uid))
            if found is not None:
                self._result.count(found, now)

    def _learn(self, job: Job, seconds: float) -> None:
        insort(self._seconds.setdefault(key_of(job), []), seconds)


def run(seed: int = 1, days: float = 7.0) -> WeekResult:
    """The result of one simulated week."""
    return Week(seed, days).run()
