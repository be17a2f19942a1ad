"""Measures: what queues deserved and held over time."""

from collections.abc import Mapping
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes

_PERIODS = ("hour", "day", "week", "month")
_AMOUNTS = ("deserved", "allocated", "waiting", "borrowed", "lent")
_HOUR = 3600


@click.command()
@click.option("--period", type=click.Choice(_PERIODS), default="day", show_default=True, help="How much time.")
@click.option("--until", help="End of the period, for example 2026-01-31T00:00:00Z. Default: now.")
@click.option("--cluster", help="Filter by cluster. Default: all that are not simulated.")
@click.option("--queue", help="Filter by queue.")
@click.option("--resource", help="Filter by resource, for example nvidia.com/gpu.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with all points in time.")
@click.pass_obj
def queue_use(choice: ServerOptions, /, as_json: bool, **query: str | None) -> None:
    """Show the GPUs that queues deserved, held, waited for, borrowed and lent, in GPU hours.

    Then it lists queues with pending jobs that were below what they deserved while other queues were above.
    """
    found = client_of(choice).get("queue-use", **query)
    if as_json:
        output.as_json(found)
        return
    if found["measured_until"] is None:
        click.echo("No queue is measured yet.")
        return
    click.echo(f"From {output.moment(found['begin'])} to {output.moment(found['end'])}, in GPU hours:")
    click.echo("The cluster is simulated." if found["is_simulated"] else "", nl=found["is_simulated"])
    heads = ("QUEUE", *(name.upper() for name in _AMOUNTS), "ALLOCATED BEFORE")
    output.table(heads, [_row(one) for one in found["queues"]], "No queue deserved, held or waited for GPUs.")
    if found["starved"]:
        click.echo()
        heads = ("BELOW ITS SHARE", "ABOVE", "RESOURCE", "MINUTES", "FIRST", "LAST")
        output.table(heads, [_pair(one) for one in found["starved"]], "")


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    amounts = (_hours(one["gpu_seconds"][name]) for name in _AMOUNTS)
    return (strip_control_codes(one["name"]), *amounts, _hours(one["gpu_seconds_before"]["allocated"]))


def _pair(one: Mapping[str, Any]) -> tuple[str, ...]:
    other = strip_control_codes(one["other"]) or "other queues"
    times = (output.moment(one["first_at"]), output.moment(one["last_at"]))
    return (strip_control_codes(one["queue"]), other, one["resource"], f"{one['seconds'] / 60:.0f}", *times)


def _hours(seconds: float) -> str:
    return f"{seconds / _HOUR:.1f}"
