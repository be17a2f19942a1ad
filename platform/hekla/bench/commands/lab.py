"""`hekla bench lab`: how long the policy lab takes for a week of jobs, and whether it repeats its own decisions."""

import json
import resource
import time
from typing import Any

import click

from hekla.engine.policy import DEFAULT_POLICY_TEXT, parse
from hekla.simulation.lab import process, results, simulated_run, synthetic
from hekla.simulation.lab.change import LabChange, QueueChange
from hekla.simulation.lab.experiment import Experiment, FinishedRun, LabColumn
from hekla.simulation.lab.synthetic import SyntheticSize
from hekla.simulation.lab.workload import Workload


@click.command("lab")
@click.option("--jobs", type=click.IntRange(10, 200_000), default=10_000, show_default=True, help="Jobs of the week.")
@click.option("--nodes", type=click.IntRange(1, 10_000), default=64, show_default=True, help="Nodes of eight GPUs.")
@click.option(
    "--load", type=click.FloatRange(0.01, 10), default=0.85, show_default=True, help="Requested part of the capacity."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the synthetic jobs.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def lab(jobs: int, nodes: int, load: float, seed: int, as_json: bool) -> None:
    """Record a run of a synthetic week, then repeat it in the lab: unchanged, and with another weight of a queue."""
    wanted = synthetic.workload(SyntheticSize(jobs=jobs, nodes=nodes, load=load), seed)
    recorded = simulated_run.run(wanted, parse(DEFAULT_POLICY_TEXT))
    workload = results.as_recorded(wanted, recorded.histories)
    change = LabChange(queues={workload.state.queues[0].name: QueueChange(weight=5)})
    began, cpu = time.perf_counter(), _cpu_seconds()
    runs = process.finish_all(Experiment(workload, DEFAULT_POLICY_TEXT, change), lambda _part: None)
    seconds, used = time.perf_counter() - began, _cpu_seconds() - cpu
    facts = _facts(workload, runs) | {
        "nodes": nodes,
        "load": load,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(used, 2),
        "is_equal": runs[LabColumn.UNCHANGED].digest == recorded.digest,
    }
    if as_json:
        click.echo(json.dumps(facts))
        return
    click.echo(f"{jobs:,} jobs, {workload.pods:,} pods in a week on {nodes:,} nodes, load {load:g}")
    click.echo(f"{seconds:.1f} s for both runs, {used:.1f} s of CPU, {facts['cycles']:,} cycles in the unchanged run")
    click.echo(f"binds of the unchanged run: {facts['equal_binds']:,} of {facts['binds']:,} as recorded")


def _facts(workload: Workload, runs: dict[LabColumn, FinishedRun]) -> dict[str, Any]:
    unchanged = runs[LabColumn.UNCHANGED]
    found = unchanged.trust
    return {
        "jobs": len(workload.jobs),
        "pods": workload.pods,
        "cycles": unchanged.cycles,
        "binds": found.binds if found else 0,
        "equal_binds": found.equal_binds if found else 0,
    }


def _cpu_seconds() -> float:
    """CPU of this process and of its finished children."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in usages)
