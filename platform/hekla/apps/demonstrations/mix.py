"""What simulated teams submit: jobs of many sizes, some of which fail, batches and flows. Nothing here reads or writes.

In their history, they submit at some moments of a day, and most jobs end at such moments too. One look of the
controller then serves many jobs, and the history is made in seconds. Everything follows from the number of the arrival.
"""

import math
import random
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hekla.apps.demonstrations.stage import GPU
from hekla.domain.flows import FlowSpec
from hekla.domain.jobspec import JobSpec
from hekla.domain.sweeps import SweepSpec

PREPARE_SECONDS = 8
"""How long a simulated pod prepares: all alike, so that the pods of a gang start to run together."""


@dataclass(frozen=True, slots=True)
class SimulatedTeam:
    """A simulated tenant; its queue has the same name. `people`: display names by user name, the first is its admin."""

    slug: str
    name: str
    weight: int
    people: Mapping[str, str]


TEAMS = (
    SimulatedTeam(
        "demo-vision",
        "Vision lab",
        2,
        {"demo-alice": "Alice Berg", "demo-bob": "Bob Lindqvist", "demo-dana": "Dana Okafor"},
    ),
    SimulatedTeam("demo-language", "Language lab", 2, {"demo-charlie": "Charlie Zhou", "demo-elena": "Elena Rossi"}),
    SimulatedTeam("demo-robotics", "Robotics lab", 1, {"demo-farid": "Farid Haddad", "demo-grete": "Grete Holm"}),
)
TEAM_OF = {person: team for team in TEAMS for person in team.people}


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of job. `minutes`: the median of its run time, and `spread` that of its logarithm.

    `least`: its minimum of pods; None: all. `fails`: the share that fails, with one of `faults`.
    """

    names: tuple[str, ...]
    kind: str
    command: tuple[str, ...]
    pods: int
    gpus: int
    cpus: int
    memory: str
    minutes: float
    spread: float
    weight: int
    fails: float = 0.05
    faults: tuple[str, ...] = ("RuntimeError: CUDA out of memory",)
    least: int | None = None


_BROKEN = (
    "ModuleNotFoundError: No module named 'einops'",
    "FileNotFoundError: data/labels.csv",
    "KeyError: 'learning_rate'",
)
_DATA = ("OSError: [Errno 28] No space left on device", "UnicodeDecodeError: invalid start byte in shard 17")
EVALUATE = Shape(("evaluate", "score"), "inference", ("python", "evaluate.py"), 1, 1, 4, "32Gi", 45, 0.4, 4)
FINETUNE = Shape(("finetune", "adapt"), "training", ("python", "finetune.py"), 1, 4, 16, "128Gi", 110, 0.5, 4, 0.08)
SWEEP = Shape(("sweep",), "training", ("python", "train.py"), 1, 1, 4, "32Gi", 45, 0.4, 0, fails=0.0)
PREPARE = Shape(("prepare", "tokenize"), "data", ("python", "prepare.py"), 2, 0, 6, "24Gi", 20, 0.6, 3, 0.06, _DATA)
SHAPES = (
    EVALUATE,
    FINETUNE,
    PREPARE,
    Shape(("debug", "smoke-test"), "training", ("python", "train.py"), 1, 1, 4, "16Gi", 9, 0.5, 4, 0.3, _BROKEN),
    Shape(
        ("resnet", "segment", "llama", "whisper"),
        "training",
        ("torchrun", "train.py"),
        *(2, 8, 32, "256Gi"),
        *(220, 0.4, 2, 0.1),
        ("RuntimeError: NCCL communicator was aborted", "RuntimeError: CUDA out of memory"),
    ),
    Shape(("elastic", "policy"), "training", ("torchrun", "train.py"), 4, 2, 8, "64Gi", 150, 0.3, 2, least=2),
)
_BATCH_PART, _FLOW_PART, _CANCEL_PART = 0.15, 0.04, 0.05
_URGENT_PART, URGENT = 0.08, 100
RATES, SIZES = ("0.01", "0.003", "0.001", "0.0003"), ("16", "32")
"""The parameters of sweeps: learning rates, and sizes of a step."""
_HISTORY_TTL = timedelta(days=7)
Durations = Callable[[float], int]
"""The run time in seconds of a job that takes about so many minutes."""


@dataclass(frozen=True, slots=True)
class Cancellation:
    """The person aborts the newest of their unfinished jobs."""


@dataclass(frozen=True, slots=True)
class TeamAction:
    """What a person does."""

    person: str
    work: JobSpec | SweepSpec | FlowSpec | Cancellation


@dataclass(frozen=True, slots=True)
class BurstTime:
    """A time of the history at which people submit, and pods have ended. `short`: how long its short jobs run."""

    at: datetime
    short: timedelta


def dice_of(number: int) -> random.Random:
    """The random numbers of one arrival or moment."""
    return random.Random(f"workload {number}")  # noqa: S311  (no secret)


# The steady work.

GAP = timedelta(seconds=60)
"""The mean time between two arrivals of the steady work."""
_TTL = timedelta(hours=12)
_FASTER, _LEAST_SECONDS, _MOST_GAPS = 15, 20, 3.0


def steady(number: int) -> tuple[TeamAction, timedelta]:
    """An arrival of the steady work, and the time until the next. Its jobs take minutes."""
    dice = dice_of(number)
    gap = min(dice.expovariate(1.0), _MOST_GAPS) * GAP
    return _arrival(dice, number, lambda minutes: max(round(minutes * 60 / _FASTER), _LEAST_SECONDS), _TTL), gap


# The history.

_BY_DAY, _BY_NIGHT, _LAST = timedelta(hours=4), timedelta(hours=8), timedelta(hours=2)
"""The mean time between two moments by day, by night and on weekends, and at any time of the last day."""
BEFORE, _APART = timedelta(seconds=30), timedelta(seconds=2)
"""The submissions of a moment begin so long before it, with so much time between them."""
_PREPARE = timedelta(seconds=PREPARE_SECONDS + 1)
_SHORT_MINUTES = 12
_NUMBERS_OF_A_MOMENT = 10


def moments(since: datetime, until: datetime) -> list[BurstTime]:
    """The moments of a history, and of a day after it."""
    found, at, number = [], since, 0
    while at < until + timedelta(days=1):
        dice = dice_of(number)
        is_day = 7 <= at.hour < 19 and at.weekday() < 5  # noqa: PLR2004  (hours and days of work)
        mean = _LAST if at > until - timedelta(days=1) else _BY_DAY if is_day else _BY_NIGHT
        at += mean * dice.uniform(0.6, 1.4)
        found.append(BurstTime(at, timedelta(minutes=dice.uniform(6, 20))))
        number += 1
    return found


def burst(number: int, known: list[BurstTime]) -> Iterator[tuple[datetime, TeamAction]]:
    """What arrives at the moment with this number, with times shortly before it."""
    moment, dice = known[number], dice_of(number)
    is_day = 7 <= moment.at.hour < 19  # noqa: PLR2004
    for place in range(dice.choice((4, 5, 6)) if is_day else dice.choice((2, 3))):
        own = number * _NUMBERS_OF_A_MOMENT + place
        yield (
            moment.at - BEFORE + place * _APART,
            _arrival(dice_of(own), own, lambda minutes: _until_a_moment(number, known, minutes), _HISTORY_TTL),
        )


def _until_a_moment(number: int, known: list[BurstTime], minutes: float) -> int:
    """About so many minutes, but until just before a moment if the pods start at the one with this number."""
    begins = known[number].at
    if minutes <= _SHORT_MINUTES:
        return round(known[number].short.total_seconds())
    at = bisect_left(known, begins + timedelta(minutes=minutes), lo=number + 1, key=lambda one: one.at)
    return round((known[min(at, len(known) - 1)].at - begins - _PREPARE).total_seconds())


# Both.


def _arrival(dice: random.Random, number: int, durations: Durations, ttl: timedelta) -> TeamAction:
    person, chance = dice.choice([*TEAM_OF]), dice.random()
    queue = TEAM_OF[person].slug
    if chance < _CANCEL_PART:
        return TeamAction(person, Cancellation())
    if chance < _CANCEL_PART + _FLOW_PART:
        return TeamAction(person, _flow(number, durations, ttl, queue, dice))
    if chance < _CANCEL_PART + _FLOW_PART + _BATCH_PART:
        return TeamAction(person, _sweep(number, durations, ttl, queue, dice))
    shape = dice.choices(SHAPES, [one.weight for one in SHAPES])[0]
    return TeamAction(
        person, JobSpec.parse(_job(shape, f"{dice.choice(shape.names)}-{number}", durations, ttl, queue, dice))
    )


def _job(
    shape: Shape, name: str, durations: Durations, ttl: timedelta, queue: str, dice: random.Random
) -> dict[str, Any]:
    minutes, env = shape.minutes * math.exp(dice.gauss(0, shape.spread)), {}
    if dice.random() < shape.fails:
        minutes *= dice.uniform(0.1, 0.9)
        env = {"HEKLA_SIM_EXIT": "1", "HEKLA_SIM_ERROR": dice.choice(shape.faults)}
    gpus = {GPU: str(shape.gpus)} if shape.gpus else {}
    task = {
        "name": "worker",
        "replicas": shape.pods,
        "command": list(shape.command),
        "resources": {"cpu": str(shape.cpus), "memory": shape.memory, **gpus},
        "env": {"HEKLA_SIM_SECONDS": str(durations(minutes)), **env},
    }
    least = {"min_available": shape.least} if shape.least else {}
    return {
        "name": name,
        "kind": shape.kind,
        "queue": queue,
        "priority": URGENT if dice.random() < _URGENT_PART else 0,
        "tasks": [task | least],
        "ttl_seconds_after_finished": round(ttl.total_seconds()),
        **least,
    }


def _sweep(number: int, durations: Durations, ttl: timedelta, queue: str, dice: random.Random) -> SweepSpec:
    """A sweep whose metrics depend on its parameters: the third learning rate is the best, and smaller steps."""
    job = _job(SWEEP, f"{SWEEP.names[0]}-{number}", durations, ttl, queue, dice)
    [task] = job["tasks"]
    task["command"] += ["--lr", "{{ lr }}", "--batch-size", "{{ batch_size }}"]
    task["env"]["HEKLA_SIM_METRICS"] = "loss=2.4..0.35 accuracy=0.11..0.94 rate={{ lr }}/0.001 size={{ batch_size }}/16"
    parameters = {"lr": list(RATES), "batch_size": list(SIZES[: dice.choice((1, 2))])}
    return SweepSpec.parse({"name": job.pop("name"), "parameters": parameters, "job": job})


def _flow(number: int, durations: Durations, ttl: timedelta, queue: str, dice: random.Random) -> FlowSpec:
    steps: list[dict[str, Any]] = []
    for name, shape in (("prepare", PREPARE), ("finetune", FINETUNE), ("evaluate", EVALUATE)):
        job = _job(shape, f"{name}-{number}", durations, ttl, queue, dice)
        steps.append({"name": name, "job": job, "depends_on": [steps[-1]["name"]] if steps else []})
    return FlowSpec.parse({"name": f"nightly-{number}", "steps": steps})
