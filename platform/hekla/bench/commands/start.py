"""`hekla bench start`: the time of `manage.py up` until its sign-in link, on a new and on a used data folder."""

import json
import os
import statistics
from collections.abc import Sequence

import click

from hekla.bench import whole
from hekla.cli import output


@click.command("start")
@click.option("--repeat", type=click.IntRange(1, 100), default=5, show_default=True, help="Number of new folders.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def start(repeat: int, as_json: bool) -> None:
    """Measure the start of a separate console, on a new folder and on a used one."""
    runs: dict[str, list[tuple[float, float]]] = {"new": [], "old": []}
    for _ in range(repeat):
        with whole.new_folder() as folder:
            for timings in runs.values():
                with whole.console(folder) as console:
                    timings.append((console.seconds, console.cpu_seconds))
    found = {kind: _figures(timings) for kind, timings in runs.items()}
    if as_json:
        click.echo(json.dumps({"repeat": repeat, "cores": os.cpu_count(), "load": os.getloadavg()[0], **found}))
        return
    rows = [(kind, *(f"{value:.1f} s" for value in figures.values())) for kind, figures in found.items()]
    click.echo(f"{repeat} starts on a new folder and again on the same; from the command to the link")
    output.table(("FOLDER", "MEDIAN", "MIN", "MAX", "CPU"), rows, "")
    click.echo(f"{os.cpu_count()} cores; the load is {os.getloadavg()[0]:.1f} now.")


def _figures(runs: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Median, minimum and maximum seconds, and the median CPU seconds of all processes until the link."""
    wall, cpu = zip(*runs, strict=True)
    found = {"median": statistics.median(wall), "min": min(wall), "max": max(wall), "cpu": statistics.median(cpu)}
    return {name: round(value, 2) for name, value in found.items()}
