"""A simulated pod. Its whole plan is known when it starts, so its state is a function of the time.

Instants are seconds of the epoch on the real clock; `speed` is already applied.
"""

import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from hekla.backends.base import Observation, PodKey, PodOrder, StartRefused
from hekla.backends.simulated.config import SimulatedConfig
from hekla.backends.simulated.metric_curves import metric_lines, parse_curves
from hekla.domain.card_resources import card_counts
from hekla.domain.phases import PodPhase

SECONDS, EXIT = "HEKLA_SIM_SECONDS", "HEKLA_SIM_EXIT"
GPU_LOAD = "HEKLA_SIM_GPU_LOAD"
"""How many GPUs the work of the task would keep busy, for example 2.7. Its running pods share the work equally."""
ERROR = "HEKLA_SIM_ERROR"
"""What the pod writes to its log before it fails, for example `KeyError: 'rate'`."""
METRICS = "HEKLA_SIM_METRICS"
"""The metrics that the pod prints (`metric_curves`)."""
MAX_SECONDS, _MAX_LOAD, _MAX_ERROR = 1e9, 1e6, 200
STOPPED_EXIT = 143
_LOG_STEPS = 10


@dataclass(frozen=True, slots=True)
class PodPlan:
    """The plan of a pod. `stopped_for`: the reason if a stop ends it before `planned_end_at`.

    `cpu`, `memory`, `cards`: its requests. `pinned`: its CPUs in each NUMA cell of its node; empty if the node has
    none. `gpu_load`: of its whole task; None: its usage is not measured. `error`: what it writes before it fails.
    `metrics`: as its variable describes them.
    """

    key: PodKey
    node: str
    address: str
    grace_seconds: float
    started_at: float
    runs_at: float
    ends_at: float
    planned_end_at: float
    exit_code: int
    stopped_for: str | None = None
    cpu: float = 0.0
    memory: float = 0.0
    pinned: tuple[int, ...] = ()
    cards: float = 0.0
    gpu_load: float | None = None
    error: str = ""
    metrics: str = ""

    def phase(self, at: float) -> PodPhase:
        """The phase at this instant."""
        if at >= self.ends_at:
            return PodPhase.SUCCEEDED if self.exit_code == 0 and self.stopped_for is None else PodPhase.FAILED
        return PodPhase.RUNNING if at >= self.runs_at else PodPhase.PREPARING

    def observe(self, at: float) -> Observation:
        """The observation at this instant."""
        phase = self.phase(at)
        since = {PodPhase.PREPARING: self.started_at, PodPhase.RUNNING: self.runs_at}.get(phase, self.ends_at)
        instant = datetime.fromtimestamp(since, tz=UTC)
        if not phase.is_final:
            return Observation(self.key, phase, instant)
        return Observation(self.key, phase, instant, self._reason(), self._message(), self.exit_code)

    def log(self, at: float) -> str:
        """The generated log until this instant, which says that the pod is simulated."""
        begin = (self.started_at, f"[simulated] This pod is simulated: nothing runs on {self.node or 'any node'}.")
        progress = [(n / _LOG_STEPS, f"[simulated] {n * 100 // _LOG_STEPS} % done") for n in range(1, _LOG_STEPS)]
        parts = sorted(progress + metric_lines(parse_curves(self.metrics), self.key.name))
        run = self.planned_end_at - self.runs_at
        lines = [(self.runs_at + part * run, text) for part, text in parts if self.runs_at + part * run < self.ends_at]
        end = (self.ends_at, f"[simulated] {self._message() or 'Ended well'}")
        return "".join(f"{text}\n" for when, text in [begin, *lines, end] if when <= at)

    def stopped(self, at: float, delay_seconds: float, reason: str) -> "PodPlan":
        """The plan after a stop; unchanged if the pod was already stopped, or ends by itself before."""
        end = at + min(delay_seconds, self.grace_seconds)
        if self.stopped_for is not None or end >= self.ends_at:
            return self
        return replace(self, ends_at=end, exit_code=STOPPED_EXIT, stopped_for=reason)

    def _reason(self) -> str:
        if self.stopped_for is not None:
            return "Stopped"
        return "Error" if self.exit_code else ""

    def _message(self) -> str:
        if self.stopped_for is not None:
            return self.stopped_for
        why = f": {self.error}" if self.error else ""
        return f"Its simulated process ended with exit code {self.exit_code}{why}" if self.exit_code else ""


def plan_pod(order: PodOrder, config: SimulatedConfig, at: float) -> PodPlan:
    """The plan of a pod that starts at `at`: from variables in its environment, else random by seed, job and name.

    Raises StartRefused for invalid variables.
    """
    drawn = random.Random(f"{config.seed}/{order.key.job}/{order.key.name}")  # noqa: S311  (no secret)
    prepare = drawn.uniform(config.prepare_seconds.min, config.prepare_seconds.max)
    run = drawn.uniform(config.run_seconds.min, config.run_seconds.max)
    fails = drawn.random() < config.failure_rate
    run = _number(order, SECONDS, run, MAX_SECONDS)
    exit_code = int(_number(order, EXIT, 1 if fails else 0, 255))
    runs_at = at + prepare / config.speed
    ends_at = runs_at + run / config.speed
    return PodPlan(
        key=order.key,
        node=order.node,
        address=order.address,
        grace_seconds=order.grace_seconds,
        started_at=at,
        runs_at=runs_at,
        ends_at=ends_at,
        planned_end_at=ends_at,
        exit_code=exit_code,
        cpu=order.resources.amount("cpu"),
        memory=order.resources.amount("memory"),
        cards=sum(card_counts(order.resources).values()),
        gpu_load=_number(order, GPU_LOAD, 0.0, _MAX_LOAD) if GPU_LOAD in order.env else None,
        error=" ".join(order.env.get(ERROR, "").split())[:_MAX_ERROR],
        metrics=_metrics(order),
    )


def plan_tombstone(key: PodKey, at: float, reason: str) -> PodPlan:
    """The plan of a pod that was stopped before its start, and never starts."""
    return PodPlan(key, "", "", 0.0, at, at, at, at, STOPPED_EXIT, reason)


def _metrics(order: PodOrder) -> str:
    text = order.env.get(METRICS, "")
    try:
        parse_curves(text)
    except ValueError:
        raise StartRefused(f"{METRICS}=“{text[:40]}” is not like “loss=2.4..0.4 accuracy=0.1..0.9”") from None
    return text


def _number(order: PodOrder, name: str, otherwise: float, most: float) -> float:
    text = order.env.get(name)
    if text is None:
        return otherwise
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= most:
        raise StartRefused(f"{name}=“{text[:40]}” is not a number from 0 to {most:g}")
    return number
