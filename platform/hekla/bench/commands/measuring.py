"""Times whole cycles of the engine.

The first cycle builds the cache. Later cycles reuse everything that has not changed, as in a real cluster.
"""

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from hekla.bench.commands.worlds import Setting
from hekla.bench.memory import forget_peak, peak_mib
from hekla.engine import cycle
from hekla.engine.decisions import Decisions
from hekla.engine.policy import parse
from hekla.engine.scheduler_cache import SchedulerCache


@dataclass
class Measurement:
    """The decisions of the last cycle, the times of all cycles in seconds, and the peak memory of the process.

    `first`: the cycle that builds the cache. `open_seconds`: for each later cycle, the time until its first action.
    """

    placed: int = 0
    promised: int = 0
    evicted: int = 0
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    open_seconds: list[float] = field(default_factory=list)
    first: float = 0.0
    peak_mib: float = 0.0

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def cpu_median(self) -> float:
        return statistics.median(self.cpu_seconds)

    @property
    def open_median(self) -> float:
        return statistics.median(self.open_seconds)

    @property
    def pods_per_second(self) -> float:
        """Placed and pipelined pods per second, by the median cycle."""
        return (self.placed + self.promised) / self.median


def measure(setting: Setting, repeat: int) -> Measurement:
    """Run a first cycle, then `repeat` measured ones. The computation of the next state is not measured."""
    policy, state, found, cache = parse(setting.policy_text), setting.state, Measurement(), SchedulerCache()
    gc.collect()
    forget_peak()
    began = time.perf_counter()
    state = setting.go_on(state, cycle(state, policy, 0.0, cache=cache))
    found.first = time.perf_counter() - began
    for _ in range(repeat):
        decisions = _timed(found, partial(cycle, state, policy, 0.0, cache=cache))
        state = setting.go_on(state, decisions)
    found.placed, found.promised = len(decisions.binds), len(decisions.pipelined)
    found.evicted = len(decisions.evictions)
    found.peak_mib = peak_mib()
    return found


def _timed(found: Measurement, turn: Callable[..., Decisions]) -> Decisions:
    wall, cpu = time.perf_counter(), time.process_time()
    decisions = turn(on_open=lambda _session: found.open_seconds.append(time.perf_counter() - wall))
    found.cpu_seconds.append(time.process_time() - cpu)
    found.seconds.append(time.perf_counter() - wall)
    return decisions
