"""`hekla bench engine`: pods per second that the scheduling engine places, considering every node."""

import json
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from hekla.bench.commands.measuring import Measurement, measure
from hekla.bench.commands.worlds import SCENARIOS
from hekla.cli import output

_GROUPS = {"quick": [name for name, one in SCENARIOS.items() if one.is_quick], "all": list(SCENARIOS)}
_HEADS = (
    "SCENARIO",
    "NODES",
    "PODS",
    "PLACED",
    "PROMISED",
    "EVICTED",
    "PODS/S",
    "CYCLE S",
    "OPEN S",
    "FIRST S",
    "CPU S",
    "PEAK MIB",
    "COST",
)
_MAX_PODS = 10_000_000


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    """The result of a scenario at one size. `cost`: the median time divided by that at the first size."""

    scenario: str
    nodes: int
    pods: int
    found: Measurement
    cost: float


@click.command("engine")
@click.option(
    "--scenario",
    "scenarios",
    multiple=True,
    type=click.Choice([*SCENARIOS, *_GROUPS]),
    help="Scenario. May be repeated.",
)
@click.option(
    "--nodes",
    type=click.IntRange(1, 100_000),
    multiple=True,
    help="Number of nodes. Repeat the option to compare sizes.",
)
@click.option("--pods", type=click.IntRange(1, _MAX_PODS), help="Number of pods.")
@click.option("--repeat", type=click.IntRange(1, 1000), default=5, show_default=True, help="Cycles to measure.")
@click.option("--list", "is_list", is_flag=True, help="List the scenarios and their sizes.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def engine(
    scenarios: tuple[str, ...], nodes: tuple[int, ...], pods: int | None, repeat: int, is_list: bool, as_json: bool
) -> None:
    """Measure scheduling cycles with the default policy: a gang of 1,000 pods on 1,000 empty nodes, or SCENARIO."""
    if is_list:
        _print_scenarios()
        return
    names = dict.fromkeys(name for word in scenarios or ("gang",) for name in _GROUPS.get(word, [word]))
    runs = [run for name in names for run in _runs(name, nodes, pods, repeat)]
    if len(runs) == 1 and not scenarios:
        _print_one(runs[0], repeat, as_json=as_json)
    elif as_json:
        click.echo(json.dumps({"python": platform.python_version(), "runs": [_figures(run) for run in runs]}))
    else:
        output.table(_HEADS, [_row(run) for run in runs], "")
        click.echo(
            f"medians of {repeat} cycles; open: the part before the first action; first: the cycle before them, which "
            "knew nothing yet; cost: seconds, as a multiple of those at the first size"
        )


def _runs(name: str, nodes: tuple[int, ...], pods: int | None, repeat: int) -> Iterator[ScenarioRun]:
    scenario = SCENARIOS[name]
    sizes = [(one, scenario.sizes[0][1]) for one in nodes] or scenario.sizes
    first = None
    for machines, number in sizes:
        found = measure(scenario.build(machines, pods or number), repeat)
        first = first or found.median
        yield ScenarioRun(name, machines, pods or number, found, found.median / first)


def _print_scenarios() -> None:
    rows = [
        (name, "yes" if one.is_quick else "", ", ".join(f"{nodes:,} x {pods:,}" for nodes, pods in one.sizes), one.text)
        for name, one in SCENARIOS.items()
    ]
    output.table(("SCENARIO", "QUICK", "NODES X PODS", "DESCRIPTION"), rows, "")


def _print_one(run: ScenarioRun, repeat: int, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(_figures(run) | {"python": platform.python_version()}))
        return
    found = run.found
    click.echo(f"{found.placed} of {run.pods} pods placed on {run.nodes} nodes, all of them considered for each pod")
    click.echo(f"{found.pods_per_second:,.0f} pods/s, {found.median:.3f} s a cycle (median of {repeat}), ", nl=False)
    click.echo(f"{found.first:.3f} s the first one")


def _figures(run: ScenarioRun) -> dict[str, Any]:
    found = run.found
    return {
        "scenario": run.scenario,
        "nodes": run.nodes,
        "nodes_considered": run.nodes,
        "pods": run.pods,
        "placed": found.placed,
        "promised": found.promised,
        "evicted": found.evicted,
        "repeat": len(found.seconds),
        "cycle_seconds_median": round(found.median, 6),
        "cycle_seconds": [round(each, 6) for each in found.seconds],
        "open_seconds_median": round(found.open_median, 6),
        "first_cycle_seconds": round(found.first, 6),
        "cpu_seconds_median": round(found.cpu_median, 6),
        "pods_per_second_median": round(found.pods_per_second, 1),
        "peak_memory_mib": round(found.peak_mib, 1),
        "cost": round(run.cost, 3),
    }


def _row(run: ScenarioRun) -> tuple[Any, ...]:
    found = run.found
    counts = (f"{n:,}" for n in (run.nodes, run.pods, found.placed, found.promised, found.evicted))
    seconds = (found.median, found.open_median, found.first, found.cpu_median)
    speeds = (f"{found.pods_per_second:,.0f}", *(f"{one:.3f}" for one in seconds))
    return (run.scenario, *counts, *speeds, f"{found.peak_mib:,.0f}", f"{run.cost:.2f}")
