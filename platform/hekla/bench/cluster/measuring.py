"""Which measurements are taken, in which order, and what is told of them."""

import argparse
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hekla.bench.cluster import hekla, peers
from hekla.bench.cluster.console import Console
from hekla.bench.cluster.observing import Bound
from hekla.bench.cluster.place import Place

_FILLED_BY = 100
"""Pods of a job where a cluster is filled."""


def measure(home: Path, asked: argparse.Namespace) -> dict[str, Any]:
    """Binds by turns, then a steady flow of jobs; or how a controller begins anew. Raises StartRefused."""
    place, console = Place(asked.kubeconfig), Console(home, asked.kubeconfig)
    try:
        facts: dict[str, Any] = {"nodes": len(place.nodes())}
        if asked.running:
            return facts | hekla.begin_anew(place, console, running=asked.running, gang=_FILLED_BY)
        facts |= {"pods": asked.jobs * asked.gang, "gang": asked.gang, "repeat": asked.repeat}
        facts |= _binds(place, console, asked)
        _say(f"a steady flow of {asked.jobs} jobs")
        flow = {"jobs": asked.jobs, "gang": asked.gang, "per_second": asked.per_second}
        waits = hekla.steady_flow(place, console, **flow)
        return facts | {"per_second": asked.per_second, "submit_to_bound_ms": waits}
    finally:
        place.close()


def _binds(place: Place, console: Console, asked: argparse.Namespace) -> dict[str, Any]:
    """In turns, so that what happens to the machine meanwhile happens to all."""
    runs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    costs: dict[str, Any] = {}
    for _round in range(asked.repeat):
        for who, began, bound in _round_of(place, console, asked, costs):
            runs[who].append((bound.per_second(), bound.per_second_since(began)))
            _say(f"{who}: {bound.per_second():.0f} binds a second")
    return {"binders": {who: _medians(taken) for who, taken in runs.items()}, **costs}


def _round_of(
    place: Place, console: Console, asked: argparse.Namespace, costs: dict[str, Any]
) -> Iterator[tuple[str, float, Bound]]:
    pods, seconds = asked.jobs * asked.gang, asked.seconds
    yield "no logic", *peers.no_logic(place, pods, seconds, made_before=False)
    began, bound, cost = hekla.flood(place, console, jobs=asked.jobs, gang=asked.gang, seconds=seconds)
    costs |= cost
    yield "hekla", began, bound
    if asked.kube_scheduler:
        yield "kube-scheduler", *peers.kube_scheduler(place, asked.kube_scheduler, pods, seconds, made_before=False)
    yield "no logic, pods made before", *peers.no_logic(place, pods, seconds, made_before=True)
    taken = hekla.others(place, console, jobs=asked.jobs, gang=asked.gang, seconds=seconds)
    yield "hekla, pods made before by others", *taken
    if asked.kube_scheduler:
        taken = peers.kube_scheduler(place, asked.kube_scheduler, pods, seconds, made_before=True)
        yield "kube-scheduler, pods made before", *taken


def _medians(taken: list[tuple[float, float]]) -> dict[str, float]:
    first, start = zip(*taken, strict=True)
    return {
        "binds_per_second": round(statistics.median(first), 1),
        "binds_per_second_from_the_start": round(statistics.median(start), 1),
    }


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
