"""Reconciles the cluster in rounds of several kinds, and measures each round.

A round has one kind of change. The periodic actions of the controller are due only in the rounds that measure them.
"""

import gc
import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from hekla.apps.clusters import leases
from hekla.apps.jobs import services
from hekla.backends.simulated.backend import SimulatedBackend
from hekla.bench.memory import forget_peak, peak_mib, present_mib
from hekla.bench.reconcile.phases import PhaseCost, PhaseMeter, Phases
from hekla.bench.reconcile.world import BenchWorld
from hekla.controller import (
    cluster_controller,
    decisions,
    displayed_queues,
    external_pods,
    garbage_collection,
    metrics,
    node_usage,
    nodes,
    observations,
    tenancy,
)
from hekla.controller.cluster_controller import ClusterController, Timer
from hekla.domain.node_usage import MAX_AGE
from hekla.launcher.gc_tuning import settle
from hekla.lib import clock
from hekla.scheduling.cache import ClusterCache

PHASES: Phases = (
    ("lead", leases, "take"),
    ("external pods", external_pods, "observe_external_pods"),
    ("external pods", external_pods, "report_reasons"),
    ("nodes", nodes, "refresh"),
    ("usage of nodes", node_usage, "measure_nodes"),
    ("read", ClusterCache, "refresh"),
    ("observe", observations, "record_observations"),
    ("sync", ClusterController, "_sync_jobs"),
    ("snapshot", ClusterCache, "snapshot"),
    ("engine", metrics, "cycle"),
    ("decisions", decisions, "by_job"),
    ("commit", services, "commit"),
    ("apply", tenancy, "apply_tenancy"),
    ("apply", cluster_controller, "apply_decisions"),
    ("display", displayed_queues, "display_queues"),
    ("clean", garbage_collection, "collect_garbage"),
    *(("backend", SimulatedBackend, name) for name in ("nodes", "measure_nodes", "observe", "forget", "_start")),
)
_NOTICEABLE_PERCENT = 10.0


@dataclass(frozen=True, slots=True)
class Round:
    """One measured reconciliation."""

    phases: Mapping[str, PhaseCost]
    server: float

    @property
    def whole(self) -> PhaseCost:
        """The sum of all phases."""
        total = PhaseCost()
        for cost in self.phases.values():
            total.add(PhaseCost(), cost)
        return total


class Rounds:
    """The rounds of one measurement, and the controller that is measured. `found`: those so far, by kind."""

    def __init__(self, world: BenchWorld) -> None:
        self._world = world
        self.controller = ClusterController(world.cluster.pk)
        self._meter = PhaseMeter(PHASES)
        self.found: dict[str, list[Round]] = {}

    def measure(self, repeat: int) -> dict[str, Any]:
        """Reconcile once as a new process, then `repeat` rounds of each kind. Returns the medians by kind."""
        settle()
        before = present_mib()
        forget_peak()
        self._reconcile("new leader", *self._timers())
        self._reconcile("warm-up")
        for _ in range(repeat):
            self._measure_kinds()
        memory = {"start_mib": before, "rest_mib": present_mib(), "peak_mib": peak_mib()}
        kinds = {kind: _medians(rounds) for kind, rounds in self.found.items() if kind != "warm-up"}
        return {"memory": {name: round(size, 1) for name, size in memory.items()}, "rounds": kinds}

    def _measure_kinds(self) -> None:
        """One round of each kind."""
        world, full = self._world, "full_look"
        self._reconcile("no check due")
        self._reconcile("no change", full)
        self._reconcile("nodes unchanged", "reading_nodes")
        world.change_nodes()
        self._reconcile("nodes changed", "reading_nodes")
        self._reconcile("warm-up", "measuring_nodes", full)  # writes the rows that got old since the last time
        self._reconcile("usage unchanged", "measuring_nodes", full)
        self._change_usage()
        self._reconcile("usage changed", "measuring_nodes", full)
        self._age_usage()
        self._reconcile("usage aged", "measuring_nodes", full)
        world.end_pods()
        world.submit_jobs()
        self._reconcile("pods ended, jobs submitted")
        self._reconcile("pods started")
        self.controller.cache.invalidate_all()
        self._reconcile("everything read", full)

    def _reconcile(self, kind: str, *due: str) -> None:
        """Measure one reconciliation, in which only these periodic actions are due."""
        gc.collect()
        now = clock.now()
        for name, timer in self._timers().items():
            timer.done_at = None if name in due else now
        phases, server = self._meter.measure(partial(self.controller.reconcile, self._world.cluster))
        self.found.setdefault(kind, []).append(Round(phases, server))

    def _timers(self) -> Mapping[str, Timer]:
        return {name: one for name, one in vars(self.controller).items() if isinstance(one, Timer)}

    def _change_usage(self) -> None:
        """Make the stored usage of some nodes noticeably different from the measured one."""
        means = list(self.controller.state.usage.values())[: self._world.size.changed_nodes]
        for mean in means:
            if mean.stored:
                mean.stored = replace(mean.stored, cpu=mean.stored.cpu + _NOTICEABLE_PERCENT)

    def _age_usage(self) -> None:
        """Make the stored usage of some nodes so old that it must be written: as many as one poll writes at most."""
        means = list(self.controller.state.usage.values())
        most = len(means) * node_usage.EVERY / (node_usage.WRITE_BEFORE - node_usage.WRITE_AFTER)
        for mean in means[: math.ceil(most)]:
            if mean.stored:
                mean.stored = replace(mean.stored, at=mean.stored.at - MAX_AGE)


def _medians(rounds: list[Round]) -> dict[str, Any]:
    """The medians over rounds of one kind, whole and by phase."""
    names = dict.fromkeys(name for one in rounds for name in one.phases)
    found = _median_cost([one.whole for one in rounds])
    found["server"] = round(statistics.median(one.server for one in rounds), 3)
    found["each"] = [{"wall": round(one.whole.wall, 4), "cpu": round(one.whole.cpu, 4)} for one in rounds]
    found["phases"] = {name: _median_cost([one.phases.get(name, PhaseCost()) for one in rounds]) for name in names}
    return found


def _median_cost(costs: list[PhaseCost]) -> dict[str, Any]:
    return {
        field.name: round(statistics.median(getattr(cost, field.name) for cost in costs), 4)
        for field in fields(PhaseCost)
    }
