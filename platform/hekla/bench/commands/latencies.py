"""Common options and output of latency measurements on a running console, one job after another."""

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from hekla.cli import output

GIVE_UP_SECONDS = 60.0
_FIGURES = ("median", "p90", "p99", "max")
_OPTIONS = (
    click.option(
        "--jobs", type=click.IntRange(1, 1000), default=20, show_default=True, help="Number of jobs, one after another."
    ),
    click.option(
        "--warm-up", type=click.IntRange(0, 100), default=2, show_default=True, help="Jobs before the measurement."
    ),
    click.option("--queue", default="default", show_default=True, help="Queue."),
    click.option("--tenant", help="Tenant (short name)."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
)


def options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the common options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def tell(
    head: str, labels: Mapping[str, str], runs: Sequence[Sequence[float]], facts: dict[str, Any], *, as_json: bool
) -> None:
    """Print the median, the 90th and 99th percentile and the maximum of each column of the runs, in milliseconds.

    `labels`: for each column its name in JSON and its label in the table.
    """
    found = {name: _figures([run[place] for run in runs]) for place, name in enumerate(labels)}
    if as_json:
        named = {f"{name}_ms_{word}": value for name, row in found.items() for word, value in row.items()}
        click.echo(json.dumps(facts | named))
        return
    click.echo(head)
    rows = [(label, *found[name].values()) for name, label in labels.items()]
    output.table(("", *(word.upper() for word in _FIGURES)), rows, "")


def _figures(timings: Sequence[float]) -> dict[str, float]:
    """The statistics by name, rounded to 0.1 ms."""
    ordered = sorted(timings)
    p90, p99 = (ordered[min(len(ordered) - 1, int(part * len(ordered)))] for part in (0.9, 0.99))
    values = statistics.median(ordered), p90, p99, ordered[-1]
    return {word: round(value, 1) for word, value in zip(_FIGURES, values, strict=True)}
