"""`hekla bench reconcile`: the cost of reconciliations of a large cluster, by phase."""

import json
import subprocess
import sys
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import Failure

_MODULE = "hekla.bench.reconcile"  # a separate process, with its own servers and database
_HEADS = ("RECONCILIATION", "SECONDS", "CPU", "DATABASE", "STATEMENTS", "ROWS")
_LEAST_SECONDS = 0.0005


@click.command("reconcile")
@click.option("--nodes", type=click.IntRange(1, 100_000), default=10_000, show_default=True, help="Number of nodes.")
@click.option(
    "--pods", type=click.IntRange(10, 1_000_000), default=100_000, show_default=True, help="Number of running pods."
)
@click.option(
    "--changed",
    type=click.IntRange(10, 100_000),
    default=1000,
    show_default=True,
    help="Pods that end, and pods that are submitted, before each measured change.",
)
@click.option("--repeat", type=click.IntRange(1, 1000), default=5, show_default=True, help="Rounds to measure.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def reconcile(as_json: bool, **sizes: int) -> None:
    """Measure reconciliations of a simulated cluster with real rows. This takes some minutes and 2 GiB of memory."""
    words = [f"--{name}={value}" for name, value in sizes.items()]
    done = subprocess.run([sys.executable, "-P", "-m", _MODULE, *words], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Failure("The reconciliations could not be measured.")
    found: dict[str, Any] = json.loads(done.stdout)
    if as_json:
        click.echo(json.dumps(found))
    else:
        _print_table(found)


def _print_table(found: dict[str, Any]) -> None:
    click.echo(f"{found['nodes']:,} nodes, {found['pods']:,} pods, {found['changed']:,} changed; ", nl=False)
    click.echo(f"medians of {found['repeat']} rounds, seconds")
    rows = []
    for kind, cost in found["rounds"].items():
        rows.append((kind, *_cells(cost, f"{cost['server']:.2f}")))
        rows += [
            (f"  {name}", *_cells(part, ""))
            for name, part in sorted(cost["phases"].items(), key=lambda item: -item[1]["wall"])
            if part["wall"] >= _LEAST_SECONDS
        ]
    output.table(_HEADS, rows, "")
    memory = found["memory"]
    click.echo(f"Memory of the controller: {memory['start_mib']:,.0f} MiB before, ", nl=False)
    click.echo(f"{memory['rest_mib']:,.0f} MiB after, {memory['peak_mib']:,.0f} MiB at most")


def _cells(cost: dict[str, Any], server: str) -> tuple[str, ...]:
    return (f"{cost['wall']:.3f}", f"{cost['cpu']:.3f}", server, f"{cost['statements']:,}", f"{cost['rows']:,}")
