"""The order of the measurements, and their results."""

import argparse
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hekla.bench.cluster import hekla, peers
from hekla.bench.cluster.console import BenchConsole
from hekla.bench.cluster.observing import BindTimes
from hekla.bench.cluster.place import BenchCluster

_FILLED_BY = 100
"""Pods per job when a cluster is filled."""


def measure(home: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Measure the bind rates and a steady flow of jobs; with `--running` a restart. Raises LaunchRefused."""
    place, console = BenchCluster(options.kubeconfig), BenchConsole(home, options.kubeconfig)
    try:
        facts: dict[str, Any] = {"nodes": len(place.nodes())}
        if options.running:
            return facts | hekla.measure_restart(place, console, running=options.running, gang=_FILLED_BY)
        facts |= {"pods": options.jobs * options.gang, "gang": options.gang, "repeat": options.repeat}
        facts |= _binds(place, console, options)
        _say(f"a steady flow of {options.jobs} jobs")
        flow = {"jobs": options.jobs, "gang": options.gang, "per_second": options.per_second}
        waits = hekla.steady_flow(place, console, **flow)
        return facts | {"per_second": options.per_second, "submit_to_bound_ms": waits}
    finally:
        place.close()


def _binds(place: BenchCluster, console: BenchConsole, options: argparse.Namespace) -> dict[str, Any]:
    """Bind rates of all schedulers, in turn, so that other load on the machine affects all of them."""
    runs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    costs: dict[str, Any] = {}
    for _round in range(options.repeat):
        for who, began, bound in _round_of(place, console, options, costs):
            runs[who].append((bound.per_second(), bound.per_second_since(began)))
            _say(f"{who}: {bound.per_second():.0f} binds a second")
    return {"binders": {who: _medians(rates) for who, rates in runs.items()}, **costs}


def _round_of(
    place: BenchCluster, console: BenchConsole, options: argparse.Namespace, costs: dict[str, Any]
) -> Iterator[tuple[str, float, BindTimes]]:
    pods, seconds = options.jobs * options.gang, options.seconds
    yield "no logic", *peers.no_logic(place, pods, seconds, made_before=False)
    began, bound, cost = hekla.flood(place, console, jobs=options.jobs, gang=options.gang, seconds=seconds)
    costs |= cost
    yield "hekla", began, bound
    if options.kube_scheduler:
        yield "kube-scheduler", *peers.kube_scheduler(place, options.kube_scheduler, pods, seconds, made_before=False)
    yield "no logic, pods made before", *peers.no_logic(place, pods, seconds, made_before=True)
    measured = hekla.bind_external_pods(place, console, jobs=options.jobs, gang=options.gang, seconds=seconds)
    yield "hekla, pods made before by others", *measured
    if options.kube_scheduler:
        measured = peers.kube_scheduler(place, options.kube_scheduler, pods, seconds, made_before=True)
        yield "kube-scheduler, pods made before", *measured


def _medians(rates: list[tuple[float, float]]) -> dict[str, float]:
    first, start = zip(*rates, strict=True)
    return {
        "binds_per_second": round(statistics.median(first), 1),
        "binds_per_second_from_the_start": round(statistics.median(start), 1),
    }


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
