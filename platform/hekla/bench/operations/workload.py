"""What people submit in a simulated day, and what becomes of it. The same each time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from hekla.bench.operations.size import DAY_MINUTES, OperationsSize
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import PodPhase

GPUS_PER_NODE = 8
GPU = "nvidia.com/gpu"
_LOAD = 0.8
"""The requested part of all GPUs."""
_KINDS = ("training", "training", "training", "inference", "data")
_SIZES = (1, 1, 2, 2, 4, 4, 8, 8, 16, 54)  # pods of jobs, each for a tenth of the jobs: 10 pods on average
_GPUS = (1, 1, 1, 1, 2, 2, 4)
_SPREAD = 1.2
"""Of the logarithm of durations: many are short, few take most of a day."""
_LONGEST_SECONDS = 20 * 3600.0
_SLOWEST_START_SECONDS = 40.0
_FAILS, _EVICTED = 0.08, 0.03
_IDLE_PODS, _UNMEASURED_PODS = 0.12, 0.05


@dataclass(frozen=True, slots=True)
class PlannedPod:
    """The rest of a pod's life, in seconds after its bind, and how busy its GPUs are in per mille; None: unknown."""

    starts: float
    ends: float
    phase: PodPhase
    busy: int | None


class DayDemand:
    """Jobs and lives of pods, drawn by chance."""

    def __init__(self, size: OperationsSize) -> None:
        self._chance = Random(7)  # noqa: S311  (the same day each time, not a secret)
        self._weights = [1 / (place + 1) ** 0.7 for place in range(size.tenants)]
        self._per_minute = size.jobs / DAY_MINUTES
        self._gpus = size.nodes * GPUS_PER_NODE
        whole = self._gpus * DAY_MINUTES * 60 * _LOAD
        self._mean_seconds = whole / (size.pods * sum(_GPUS) / len(_GPUS))

    def arrivals(self, minute: int) -> int:
        """How many jobs come in this minute: more of them in the middle of the day."""
        wave = 1 - 0.15 * math.cos(2 * math.pi * minute / DAY_MINUTES)
        wanted = self._per_minute * wave
        return int(wanted) + (self._chance.random() < wanted % 1)

    def submitter(self) -> int:
        """The place of a tenant. Some submit far more than others."""
        return self._chance.choices(range(len(self._weights)), self._weights)[0]

    def one_of(self, choices: int) -> int:
        """A number below this one."""
        return self._chance.randrange(choices)

    def spec(self, name: str, queue: str) -> JobSpec:
        """A job."""
        gpus = self._chance.choice(_GPUS)
        resources = {"cpu": "4", "memory": "16Gi", GPU: str(gpus)}
        replicas = min(self._chance.choice(_SIZES), self._gpus // gpus)  # else it could never start
        task = {"name": "worker", "replicas": replicas, "command": ["python", "train.py"], "resources": resources}
        kind = self._chance.choice(_KINDS)
        return JobSpec.parse({"name": name, "queue": queue, "kind": kind, "tasks": [task]})

    def life(self, pods: int) -> list[PlannedPod]:
        """What becomes of the pods of a gang. They end together; in a job that fails, one of them has failed."""
        scale = self._mean_seconds / math.exp(_SPREAD**2 / 2)
        lasts = min(60 + scale * math.exp(self._chance.gauss(0, _SPREAD)), _LONGEST_SECONDS)
        starts = [self._chance.uniform(1, _SLOWEST_START_SECONDS) for _ in range(pods)]
        ends = max(starts) + lasts
        failing = self._chance.randrange(pods) if self._chance.random() < _FAILS else -1
        return [
            PlannedPod(start, ends, PodPhase.FAILED if place == failing else PodPhase.SUCCEEDED, self._busy())
            for place, start in enumerate(starts)
        ]

    def evicted(self, running: Sequence[int]) -> list[int]:
        """The jobs to evict pods of in this hour, among these."""
        return self._chance.sample(running, int(len(running) * _EVICTED))

    def _busy(self) -> int | None:
        drawn = self._chance.random()
        if drawn < _UNMEASURED_PODS:
            return None
        return 0 if drawn < _UNMEASURED_PODS + _IDLE_PODS else self._chance.randint(300, 990)
