"""Autoscaling: how many replicas keep the cards of an elastic task near a utilization.

The rule is that of Kubernetes' horizontal autoscaler: replicas times utilization over target, rounded up, with a
tolerance, a limit on each step, and a stabilization window before a task shrinks. A replica without figures counts as
idle when a task would grow, and as on target when it would shrink, so that missing figures never cause a change.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from hekla.domain.field_types import StrictInteger

MAX_STABILIZATION_SECONDS = 3600
MINUTE_SECONDS = 60
TOLERANCE = 0.1
"""A ratio this close to 1 changes nothing."""
_GROWTH, _LEAST_GROWTH = 2, 4
"""One step at most doubles the replicas, or leads to four."""
_ROUNDING = 1e-9


class Autoscaling(BaseModel):
    """A task grows to `max_replicas`, and shrinks to its minimum, to keep its cards at `gpu_utilization` per cent.

    `stabilization_seconds`: how long fewer replicas must be enough before it shrinks.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_replicas: Annotated[StrictInteger, Field(ge=1)]
    gpu_utilization: Annotated[StrictInteger, Field(ge=1, le=100)]
    stabilization_seconds: Annotated[StrictInteger, Field(ge=0, le=MAX_STABILIZATION_SECONDS)] = 300

    @property
    def minutes(self) -> int:
        """How many minutes of figures the rule reads."""
        return 1 + math.ceil(self.stabilization_seconds / MINUTE_SECONDS)


class ScalingState(StrEnum):
    """What the rule finds. Only GROWING and SHRINKING change the number of replicas."""

    NO_FIGURES = "no_figures"
    ON_TARGET = "on_target"
    GROWING = "growing"
    SHRINKING = "shrinking"
    AWAITING_REPLICAS = "awaiting_replicas"
    """The cards are busier than the target, but replicas do not run yet, or have no figures."""
    STABILIZING = "stabilizing"
    AT_MAXIMUM = "at_maximum"
    AT_MINIMUM = "at_minimum"
    AT_LIMIT = "at_limit"
    """A quota or the limit of the queue has no room for another replica."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """`replicas`: how many the task should have. `utilization`: of the last minute in per cent; None: no figures."""

    state: ScalingState
    replicas: int
    utilization: float | None = None


Minute = Sequence[float]
"""The mean utilization of each measured replica in one minute, in per cent."""


def recommend(rule: Autoscaling, replicas: int, least: int, minutes: Sequence[Minute]) -> Recommendation:
    """How many replicas the task should have. `minutes`: newest first, `rule.minutes` of them."""
    newest = minutes[0] if minutes else ()
    if not newest:
        return Recommendation(ScalingState.NO_FIGURES, replicas)
    utilization = fmean(newest)
    ratio = utilization / rule.gpu_utilization
    if abs(ratio - 1) <= TOLERANCE:
        return Recommendation(ScalingState.ON_TARGET, replicas, utilization)
    state, wanted = _grown(rule, replicas, newest) if ratio > 1 else _shrunk(rule, replicas, least, minutes)
    return Recommendation(state, wanted, utilization)


def _grown(rule: Autoscaling, replicas: int, newest: Minute) -> tuple[ScalingState, int]:
    if replicas >= rule.max_replicas:
        return ScalingState.AT_MAXIMUM, replicas
    wanted = _enough(rule, replicas, newest)
    if wanted <= replicas:
        return ScalingState.AWAITING_REPLICAS, replicas
    return ScalingState.GROWING, min(wanted, rule.max_replicas, max(_GROWTH * replicas, _LEAST_GROWTH))


def _shrunk(rule: Autoscaling, replicas: int, least: int, minutes: Sequence[Minute]) -> tuple[ScalingState, int]:
    if replicas <= least:
        return ScalingState.AT_MINIMUM, replicas
    if _enough(rule, replicas, minutes[0]) >= replicas:
        return ScalingState.ON_TARGET, replicas
    in_window = [*minutes[: rule.minutes], *([()] * (rule.minutes - len(minutes)))]
    wanted = max(_enough(rule, replicas, minute) for minute in in_window)
    if wanted >= replicas:
        return ScalingState.STABILIZING, replicas
    return ScalingState.SHRINKING, max(wanted, least, math.ceil(replicas / _GROWTH))


def _enough(rule: Autoscaling, replicas: int, minute: Minute) -> int:
    """How many replicas would have been on target in this minute; without figures, the present number.

    A task that has shrunk since then had more replicas in that minute.
    """
    if not minute:
        return replicas
    count = max(replicas, len(minute))
    ratio = fmean(minute) / rule.gpu_utilization
    if abs(ratio - 1) <= TOLERANCE:
        return count
    missing = (count - len(minute)) * (0 if ratio > 1 else rule.gpu_utilization)
    filled = (sum(minute) + missing) / (count * rule.gpu_utilization)
    if abs(filled - 1) <= TOLERANCE or (filled > 1) != (ratio > 1):
        return count
    return math.ceil(filled * count - _ROUNDING)
