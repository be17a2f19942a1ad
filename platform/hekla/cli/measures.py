"""Measures: what became of the GPU time."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes

_PERIODS = ("hour", "day", "week", "month", "quarter")
_PARTS = ("tenant", "queue", "cluster", "person", "kind", "model")
_WASTED = ("idle", "gang", "preempted", "retried", "failed")
_UNHELD = ("free", "drained", "down")
_HOUR = 3600


@click.command()
@click.option("--period", type=click.Choice(_PERIODS), default="day", show_default=True, help="How much time.")
@click.option("--until", help="End of the period, for example 2026-01-31T00:00:00Z. Default: now.")
@click.option("--cluster", help="Filter by cluster. Default: all that are not simulated.")
@click.option("--queue", help="Filter by queue.")
@click.option("--tenant", help="Filter by tenant (short name).")
@click.option("--model", help="Filter by model of the GPUs.")
@click.option("--by", type=click.Choice(_PARTS), default="tenant", show_default=True, help="Parts to list.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with all points in time.")
@click.pass_obj
def gpu_time(choice: ServerOptions, /, as_json: bool, **query: str | None) -> None:
    """Show what became of the GPU time: of the whole capacity if you can see everything, else of your tenants' jobs.

    Prints GPU hours by class, those of the period before, and the parts.
    """
    found = client_of(choice).get("gpu-time", **query)
    if as_json:
        output.as_json(found)
        return
    if found["measured_until"] is None:
        click.echo("No GPU time is measured yet.")
        return
    click.echo(f"From {output.moment(found['begin'])} to {output.moment(found['end'])}, in GPU hours:")
    click.echo("The cluster is simulated." if found["is_simulated"] else "", nl=found["is_simulated"])
    now, before = found["gpu_seconds"], found["gpu_seconds_before"]
    whole = sum(now.values())
    rows = [(name, _hours(now[name]), _part(now[name], whole), _hours(before.get(name, 0))) for name in now]
    rows.append(("total", _hours(whole), _part(whole, whole), _hours(sum(before.values()))))
    output.table(("CLASS", "HOURS", "PART", "PERIOD BEFORE"), rows, "")
    _print_parts(str(query["by"]), found["parts"])


def _print_parts(by: str, parts: Sequence[Mapping[str, Any]]) -> None:
    rows = [
        (
            strip_control_codes(one["name"]),
            _hours(sum(amount for name, amount in one["gpu_seconds"].items() if name not in _UNHELD)),
            _hours(one["gpu_seconds"].get("useful", 0)),
            _hours(sum(one["gpu_seconds"].get(name, 0) for name in _WASTED)),
        )
        for one in parts
    ]
    click.echo()
    output.table((by.upper(), "HELD", "USEFUL", "WASTED"), rows, "No pod held GPUs.")


def _hours(seconds: float) -> str:
    return f"{seconds / _HOUR:.1f}"


def _part(amount: float, whole: float) -> str:
    return f"{100 * amount / whole:.1f} %" if whole else "–"


@click.command()
@click.option("--period", type=click.Choice(_PERIODS), default="day", show_default=True, help="How much time.")
@click.option("--until", help="End of the period, for example 2026-01-31T00:00:00Z. Default: now.")
@click.option("--cluster", help="Filter by cluster. Default: all that are not simulated.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def overview(choice: ServerOptions, /, as_json: bool, **query: str | None) -> None:
    """Show the figures to look at first: use, waste, waiting times, results, starved queues, alerts and nodes."""
    found = client_of(choice).get("overview", **query)
    if as_json:
        output.as_json(found)
        return
    click.echo(f"From {output.moment(found['begin'])} to {output.moment(found['end'])}:")
    click.echo("The cluster is simulated." if found["is_simulated"] else "", nl=found["is_simulated"])
    rows = [(one["name"], _value(one, "value"), _value(one, "before")) for one in found["figures"]]
    output.table(("FIGURE", "VALUE", "PERIOD BEFORE"), rows, "")


_UNITS = {"percent": "{:,.1f} %", "gpu_hours": "{:,.1f} GPU hours", "seconds": "{:,.0f} s", "count": "{:,.0f}"}


def _value(figure: Mapping[str, Any], name: str) -> str:
    """A value with its unit; empty if there is none."""
    value = figure[name]
    return "" if value is None else _UNITS.get(figure["unit"], "{:g}").format(value)
