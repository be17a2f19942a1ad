"""Jobs with what differs between them and the metrics that they print, as a table."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import Failure, client_of
from hekla.cli.completion import JOB
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes

_VALUES = ("last", "min", "max")
_MOST_METRICS, _MOST_PARAMETERS, _MOST_WORDS = 6, 12, 40


def ranking(command: Callable[..., None]) -> Callable[..., None]:
    """The options that choose the best job."""
    value = click.option(
        "--value",
        type=click.Choice(_VALUES),
        default="last",
        show_default=True,
        help="Which value of each job is shown and counts.",
    )
    goal = click.option(
        "--goal", type=click.Choice(("min", "max")), help="Which value is best. Default: by the metric's name."
    )
    metric = click.option(
        "--metric", help="Metric that decides which job is best. Default: the one that most jobs print."
    )
    return metric(goal(value(command)))


@click.command()
@click.argument("names", metavar="JOB...", type=JOB, nargs=-1, required=True)
@ranking
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def compare(
    choice: ServerOptions, names: tuple[str, ...], metric: str | None, goal: str | None, value: str, as_json: bool
) -> None:
    """Compare JOB... (names or uids, at most 50): the settings that differ, the metrics, and the best job."""
    client = client_of(choice)
    found = client.compare(names, metric=metric, goal=goal, value=value)
    if as_json:
        output.as_json(found)
        return
    if metric and metric not in found["metrics"]:
        raise Failure(f"None of these jobs has printed a metric “{strip_control_codes(metric)}”.")
    print_runs(found, value, first=metric)
    if not found["metrics"]:
        click.echo("\nNo metrics. A job reports metrics by printing lines such as ::metric step=100 loss=0.23")


def print_runs(found: Mapping[str, Any], value: str, *, first: str | None = None) -> None:
    """Print the jobs, the best marked, and which job is best. `first`: the metric of the first column."""
    best, names, metrics = found["best"], found["varying"][:_MOST_PARAMETERS], found["metrics"]
    leading = first or (best["metric"] if best else None)
    if leading and leading not in metrics[:_MOST_METRICS]:
        metrics = [leading, *metrics]
    metrics = metrics[:_MOST_METRICS]
    heads = ("", "NUMBER", "JOB", "PHASE", *map(_short, names), *map(_short, metrics))
    rows = [
        (
            "*" if best and job["uid"] == best["uid"] else "",
            job["number"],
            job["job"],
            output.phase(job["phase"]),
            *(_short(job["parameters"].get(name, "")) for name in names),
            *(_figure(job["metrics"].get(name), value) for name in metrics),
        )
        for job in found["jobs"]
    ]
    output.table(heads, rows, "No jobs.")
    if best:
        click.echo(f"\nBest job: {best['job']} ({_short(best['metric'])} {best['value']:.4g})")


def _short(words: str) -> str:
    return strip_control_codes(words)[:_MOST_WORDS] or "–"


def _figure(figures: Mapping[str, float] | None, value: str) -> str:
    return f"{figures[value]:.4g}" if figures else "–"
