"""Signs that a running pod makes no progress, judged from what was read of its log and measured of its GPUs.

A pod is compared with its own past, or with the other replicas of its task: a program that never printed a metric, or
that prints little, shows no sign. Times count up to the last reading, so a reader that is late accuses nobody.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from math import isfinite
from statistics import median
from typing import Any, Self

from hekla.domain.metric_series import MetricSeries

LEAST_MARKS, LEAST_GROWTHS = 5, 5
"""A pod that has printed fewer metrics, or whose log grew in fewer readings, has no usual pause yet."""
_PATIENCE = 3
"""A pause is unusual if it is so many times the longest one before."""
_SLOW = 0.7
"""A replica is slow below this part of the pace of the others, once it is so far behind them, of the time `quiet`:"""
_BEHIND = 5
_LONGEST = 10 * 365 * 86_400.0
"""Longer times, in seconds, count as this one: programs choose the times in their files, and their steps."""


class StallSign(StrEnum):
    """A sign that a pod makes no progress."""

    NO_METRICS = "no_metrics"
    SLOW_REPLICA = "slow_replica"
    SILENT_LOG = "silent_log"
    UNUSED_GPUS = "unused_gpus"


class ReminderCause(StrEnum):
    """Why a person asks the owner of a job to look at it."""

    STALLED = "stalled"
    UNUSED = "unused"


@dataclass(frozen=True, slots=True)
class MetricProgress:
    """How far a pod is by its metric with the most values.

    `seconds`: when the last value of any metric came, since the pod started; `longest`: the longest pause between two
    values, in seconds; `pace`: steps per second in the last quarter of the curve, None if unknown.
    """

    metric: str
    count: int
    step: float
    seconds: float
    longest: float
    pace: float | None

    @classmethod
    def of(cls, series: Mapping[str, MetricSeries]) -> Self | None:
        """The progress that these series show; None if the time of no value is known."""
        known = {name: one for name, one in series.items() if one.last and one.last.seconds is not None}
        if not known:
            return None
        name = min(known, key=lambda name: (-known[name].count, name))
        one = series[name]
        points = sorted(
            (min(point.seconds, _LONGEST), float(point.step))
            for point in (one.first, *(point for stretch in one.stretches for point in stretch), one.last)
            if point is not None and point.seconds is not None
        )
        times = [seconds for seconds, _step in points]
        begin, end = points[3 * len(points) // 4 - 1] if len(points) > 1 else points[0], points[-1]
        passed = end[0] - begin[0]
        pace = (end[1] - begin[1]) / passed if passed > 0 else None
        pace = pace if pace is not None and isfinite(pace) else None
        longest = max((after - before for before, after in pairwise(times)), default=0.0)
        newest = min(max(one.last.seconds or 0.0 for one in known.values() if one.last), _LONGEST)
        return cls(name, one.count, end[1], newest, round(longest, 1), pace)

    @classmethod
    def stored(cls, document: Mapping[str, Any]) -> Self | None:
        """What `document` stored; None for an empty one."""
        if not document:
            return None
        # The database returns 1e300 as a whole number, of which not all differences are numbers with a point.
        numbers = {name: document[name] for name in ("step", "seconds", "longest", "pace")}
        return cls(**{**document, **{name: one if one is None else float(one) for name, one in numbers.items()}})

    def document(self) -> dict[str, Any]:
        """It as JSON-like data."""
        return {name: getattr(self, name) for name in ("metric", "count", "step", "seconds", "longest", "pace")}


@dataclass(frozen=True, slots=True)
class LogGrowth:
    """How a log grew: last at `at`, in `count` readings, with a pause of `longest` seconds at most between them.

    `known_at`: when its cluster last returned it.
    """

    at: datetime
    count: int
    longest: float
    known_at: datetime


@dataclass(frozen=True, slots=True)
class PodActivity:
    """What is known of a running pod. `read_at`: up to when its metrics are known.

    `unused_since`: since when its GPUs are unused; None if they are used, or that is not measured.
    """

    pod: int
    job: int
    task: str
    started_at: datetime
    read_at: datetime | None = None
    progress: MetricProgress | None = None
    log: LogGrowth | None = None
    unused_since: datetime | None = None

    @property
    def marked_at(self) -> datetime | None:
        """When its last metric came; None if there was none."""
        return self.started_at + timedelta(seconds=self.progress.seconds) if self.progress else None


@dataclass(frozen=True, slots=True)
class Stall:
    """A sign of a pod, since when about, with its figures.

    `usual`: the longest pause before, in seconds. `step`, `pace`: of the pod; `other_step`, `other_pace`: the median of
    the others.
    """

    pod: int
    sign: StallSign
    since: datetime
    figures: Mapping[str, float | str] = field(default_factory=dict)


def find_stalls(pods: Iterable[PodActivity], *, quiet: timedelta, now: datetime) -> list[Stall]:
    """The signs of these pods, the oldest first. `quiet`: a shorter pause is no sign."""
    groups: dict[tuple[int, str], list[PodActivity]] = defaultdict(list)
    found: list[Stall] = []
    for pod in pods:
        found += _of_pod(pod, quiet, now)
        if pod.progress is not None and pod.progress.pace is not None:
            groups[pod.job, pod.task].append(pod)
    stopped = {one.pod for one in found if one.sign is StallSign.NO_METRICS}
    for members in groups.values():
        found += _slow_ones([pod for pod in members if pod.pod not in stopped], quiet / _BEHIND)
    return sorted(found, key=lambda one: (one.since, one.pod, one.sign))


def _of_pod(pod: PodActivity, quiet: timedelta, now: datetime) -> Iterator[Stall]:
    progress, marked_at, log = pod.progress, pod.marked_at, pod.log
    if progress and marked_at and pod.read_at and progress.count >= LEAST_MARKS:
        figures: dict[str, float | str] = {"metric": progress.metric, "step": progress.step, "usual": progress.longest}
        if pod.read_at - marked_at >= _unusual(quiet, progress.longest):
            yield Stall(pod.pod, StallSign.NO_METRICS, marked_at, figures)
    if log and log.count >= LEAST_GROWTHS and log.known_at - log.at >= _unusual(2 * quiet, log.longest):
        yield Stall(pod.pod, StallSign.SILENT_LOG, log.at, {"usual": log.longest})
    if pod.unused_since is not None and now - pod.unused_since >= quiet:
        yield Stall(pod.pod, StallSign.UNUSED_GPUS, pod.unused_since)


def _unusual(quiet: timedelta, longest: float) -> timedelta:
    return max(quiet, _PATIENCE * timedelta(seconds=longest))


def _slow_ones(pods: Sequence[PodActivity], least: timedelta) -> Iterator[Stall]:
    """Those of the replicas of one task that are slower than the others, and for at least so long behind them."""
    by_metric: dict[str, list[tuple[PodActivity, MetricProgress, float]]] = defaultdict(list)
    for pod in pods:
        if pod.progress is not None and pod.progress.pace is not None:
            by_metric[pod.progress.metric].append((pod, pod.progress, pod.progress.pace))
    for members in by_metric.values():
        for pod, own, pace in members:
            others = [(progress.step, speed) for other, progress, speed in members if other.pod != pod.pod]
            if not others:
                continue
            step, speed = median(one for one, _speed in others), median(one for _step, one in others)
            behind = step - own.step
            if not (isfinite(behind) and isfinite(speed)) or behind <= 0 or speed <= 0 or pace >= _SLOW * speed:
                continue
            if timedelta(seconds=min(behind / speed, _LONGEST)) < least:
                continue
            since = (pod.marked_at or pod.started_at) - timedelta(seconds=min(behind / (speed - pace), _LONGEST))
            figures: dict[str, float | str] = {
                "metric": own.metric, "step": own.step, "pace": pace, "other_step": step, "other_pace": speed,
            }  # fmt: skip
            yield Stall(pod.pod, StallSign.SLOW_REPLICA, max(since, pod.started_at), figures)
