"""Measures of jobs: waiting times, throughput and failures."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes

_PERIODS = ("hour", "day", "week", "month")
_PARTS = ("queue", "tenant", "person", "size", "kind", "model", "cluster")
_SIZES = ("0", "1", "2-4", "5-8", "9-16", "17-64", "65+")
_QUANTILES = ("p50", "p90", "p95", "p99")
_PLACES = {"nodes": "NODE", "images": "IMAGE", "exit_codes": "EXIT CODE"}
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_Command = Callable[..., None]


def _with_query(command: _Command) -> _Command:
    """The options of both commands."""
    options = (
        click.option("--period", type=click.Choice(_PERIODS), default="day", show_default=True, help="How much time."),
        click.option("--until", help="End of the period, for example 2026-01-31T00:00:00Z. Default: now."),
        click.option("--cluster", help="Filter by cluster. Default: all that are not simulated."),
        click.option("--queue", help="Filter by queue."),
        click.option("--tenant", help="Filter by tenant (short name)."),
        click.option("--person", help="Filter by owner."),
        click.option("--kind", help="Filter by kind of job."),
        click.option("--size", type=click.Choice(_SIZES), help="Filter by the GPUs of the whole job."),
        click.option("--model", help="Filter by model of the GPUs."),
        click.option("--by", type=click.Choice(_PARTS), default="queue", show_default=True, help="Parts to list."),
        click.option("--json", "as_json", is_flag=True, help="Print JSON, with all points in time."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@_with_query
@click.pass_obj
def waiting(choice: ServerOptions, /, as_json: bool, **query: str | None) -> None:
    """Show how long jobs waited before they started, and how many started and ended.

    A wait counts when the job starts. Jobs that still wait are counted apart.
    """
    found = client_of(choice).get("job-waiting", **query)
    if as_json:
        output.as_json(found)
        return
    _print_head(found)
    now, before = found["total"], found["before"]
    waits = [
        (name, _time(now["wait_seconds"][name]), _time(before["wait_seconds"][name])) for name in now["wait_seconds"]
    ]
    output.table(("WAIT", "TIME", "PERIOD BEFORE"), waits, "")
    click.echo()
    counts = [(name, str(now["counts"][name]), str(before["counts"][name])) for name in now["counts"]]
    output.table(("JOBS", "NUMBER", "PERIOD BEFORE"), counts, "")
    if present := found["waiting"]:
        longest = _time(present["longest_seconds"]) if present["count"] else ""
        click.echo(f"\nWaiting now: {present['count']}" + (f", the longest for {longest}." if longest else "."))
    parts = [
        (
            strip_control_codes(one["name"]),
            *(_time(one["wait_seconds"][name]) for name in _QUANTILES),
            *(str(one["counts"][name]) for name in ("started", "completed", "failed")),
            str(one["waiting"]),
        )
        for one in found["parts"]
    ]
    heads = (*(name.upper() for name in _QUANTILES), "STARTED", "COMPLETED", "FAILED", "WAITING NOW")
    click.echo()
    output.table((str(query["by"]).upper(), *heads), parts, "No job started or ended.")


@click.command()
@_with_query
@click.pass_obj
def failures(choice: ServerOptions, /, as_json: bool, **query: str | None) -> None:
    """Show how many jobs failed, by cause, node, image and exit code."""
    found = client_of(choice).get("job-failures", **query)
    if as_json:
        output.as_json(found)
        return
    _print_head(found)
    now, before = found["total"], found["before"]["failed_by_cause"]
    rows = [(cause, str(count), str(before.get(cause, 0))) for cause, count in now["failed_by_cause"].items()]
    output.table(("CAUSE", "FAILED", "PERIOD BEFORE"), rows, "No job failed.")
    for name, head in _PLACES.items():
        if found[name]:
            places = [(strip_control_codes(one["name"]), str(one["failed"]), one["main_cause"]) for one in found[name]]
            click.echo()
            output.table((head, "FAILED", "MAIN CAUSE"), places, "")
    parts = [
        (strip_control_codes(one["name"]), str(one["counts"]["completed"]), str(one["counts"]["failed"]))
        for one in found["parts"]
    ]
    click.echo()
    output.table((str(query["by"]).upper(), "COMPLETED", "FAILED"), parts, "No job started or ended.")


def _print_head(found: Mapping[str, Any]) -> None:
    click.echo(f"From {output.moment(found['begin'])} to {output.moment(found['end'])}:")
    click.echo("The cluster is simulated." if found["is_simulated"] else "", nl=found["is_simulated"])


def _time(seconds: float | None) -> str:
    """A waiting time in its two largest units; a dash without jobs."""
    if seconds is None:
        return "–"
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"
