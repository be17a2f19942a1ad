"""`hekla bench operations`: the dashboards of operations with measures of many days, and the cost of keeping them."""

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from hekla.bench.operations.size import DAY_MINUTES
from hekla.cli import output
from hekla.cli.client import Failure

_MODULE = "hekla.bench.operations"  # a separate process, with its own servers and database
_GIB = 2**30
_SIMULATED = """\
Simulated: time, nodes, what pods do and use, and the engine: the first nodes with room get a gang. The days before are
copies of the facts of that one, without samples of use. Sessions and logs exist for the pods of its end only. Real: the
services that the controller calls, their events, the roll-up and its rows, and pages and REST without the network."""


@click.command("operations")
@click.option("--nodes", type=click.IntRange(1, 10_000), default=1000, show_default=True, help="Nodes of eight GPUs.")
@click.option(
    "--pods", type=click.IntRange(100, 1_000_000), default=300_000, show_default=True, help="Pods of the day."
)
@click.option("--days", type=click.IntRange(1, 400), default=90, show_default=True, help="Days with measures.")
@click.option(
    "--minutes", type=click.IntRange(1, 1440), default=1440, show_default=True, help="Minutes of each day that pass."
)
@click.option("--tenants", type=click.IntRange(1, 1000), default=200, show_default=True, help="Number of tenants.")
@click.option(
    "--repeat",
    type=click.IntRange(0, 10_000),
    default=20,
    show_default=True,
    help="Requests per page; 0: only fill the folder of --data.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the data in this folder. Days that it has are measured again, missing ones added.",
)
@click.option("--page", "pages", multiple=True, help="Measure this route only, by its name. May be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def operations(as_json: bool, pages: tuple[str, ...], data: Path | None, **sizes: int) -> None:
    """Let a day pass in simulated time, through the services of the controller, and roll up its measures.

    Then repeat its facts for the days before, one after another, compute their sums as for late data, and measure the
    dashboards. The default size takes hours, and 20 GiB of disk: --data keeps it, and goes on after an interruption
    once the first day has passed.
    """
    words = [f"--{name}={value}" for name, value in sizes.items()]
    words += [f"--data={data}"] if data else []
    words += [f"--page={page}" for page in pages]
    done = subprocess.run([sys.executable, "-P", "-m", _MODULE, *words], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Failure("The dashboards could not be measured.")
    found: dict[str, Any] = json.loads(done.stdout)
    if as_json:
        click.echo(json.dumps(found))
    else:
        _print(found)


def _print(found: dict[str, Any]) -> None:
    click.echo(f"{found['nodes']:,} nodes, {found['pods']:,} pods in {DAY_MINUTES} minutes; ", nl=False)
    click.echo(f"{found['minutes']:,} simulated minutes took {found['seconds']['day']:,.0f} s, ", nl=False)
    days, hours, seconds = found["days"], found["hours_computed"], found["seconds"]["history"]
    click.echo(f"facts of {days} days and the sums of {hours:,} hours {seconds:,.0f} s")
    parts = [cost["core_percent"] for cost in found["roll_up"]]
    mean, most = statistics.mean(parts), max(parts)
    click.echo(f"Rolling up takes {mean:.1f} % of a core, {most:.1f} % in the worst hour; ", nl=False)
    click.echo(f"{found['roll_up'][-1]['waiting']} hours waited to be computed again in the end")
    click.echo(_SIMULATED)
    click.echo()
    rows = [(row["what"], row["who"], row["p50"], row["p99"], row["cpu"], row["queries"]) for row in found["pages"]]
    output.table(("DASHBOARD", "FOR", "P50", "P99", "CPU", "QUERIES"), rows, "")
    click.echo()
    tables = found["tables"]
    sizes = [(row["table"], f"{row['rows']:,}", _gib(row["bytes"]), _gib(row["index_bytes"])) for row in tables]
    output.table(("TABLE", "ROWS", "SIZE", "INDEXES"), sizes, "")
    click.echo(f"Together {_gib(sum(row['bytes'] + row['index_bytes'] for row in tables))}")


def _gib(size: int) -> str:
    return f"{size / _GIB:.2f} GiB"
