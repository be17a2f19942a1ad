"""Measures: what held resources cost."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes

_WASTED = ("idle", "gang", "preempted", "retried", "failed")


@click.command()
@click.option(
    "--period", type=click.Choice(("day", "week", "month", "quarter")), default="month", show_default=True,
    help="How much time.",
)  # fmt: skip
@click.option("--until", help="End of the period, for example 2026-01-31T00:00:00Z. Default: now.")
@click.option("--cluster", help="Filter by cluster. Default: all that are not simulated.")
@click.option("--queue", help="Filter by queue.")
@click.option("--tenant", help="Filter by tenant (short name).")
@click.option("--model", help="Filter by model of the GPUs.")
@click.option(
    "--by", type=click.Choice(("tenant", "queue", "cluster", "person", "kind", "model")), default="tenant",
    show_default=True, help="Parts to list.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with all points in time.")
@click.pass_obj
def cost(choice: ServerOptions, /, as_json: bool, **query: str | None) -> None:
    """Show what held resources cost: of all jobs if you can see everything, else of your tenants' jobs.

    Prints the parts, the resources, and what the month will cost.
    """
    found = client_of(choice).get("cost", **query)
    if as_json:
        output.as_json(found)
        return
    if found["priced_since"] is None:
        click.echo("Nothing has a price yet. `hekla price create` adds a price list.")
        return
    begin, end = output.moment(found["begin"]), output.moment(found["end"])
    click.echo(f"From {begin} to {end}, in {found['currency']}:")
    click.echo("The cluster is simulated." if found["is_simulated"] else "", nl=found["is_simulated"])
    whole = (found["total"], found["cost_before"], found["cost"])
    rows = [
        (
            strip_control_codes(one["name"]) or "CPU and memory",
            _money(one["total"]),
            _wasted(one["cost"]),
            _money(one["before"]),
        )
        for one in found["parts"]
    ]
    rows.append(("total", _money(whole[0]), _wasted(whole[2]), _money(str(_sum(whole[1])))))
    output.table((str(query["by"]).upper(), "COST", "WASTED", "PERIOD BEFORE"), rows, "")
    click.echo()
    held = [
        (one["resource"], strip_control_codes(one["model"]), f"{one['hours']:.1f}", _money(one["cost"]))
        for one in found["resources"]
    ]
    output.table(("RESOURCE", "MODEL", "HOURS", "COST"), held, "No pod held anything with a price.")
    _print_forecast(found["forecast"], found["currency"])


def _print_forecast(found: Mapping[str, Any] | None, currency: str) -> None:
    if found is None:
        return
    click.echo(f"\nThis month (UTC) so far: {_money(found['spent'])} {currency}.")
    if found["total"] is None:
        click.echo(f"Too little past for a forecast: {found['days']} whole days.")
        return
    error = "unknown error: no past month" if found["error"] is None else f"{100 * found['error']:.0f} % mean error"
    click.echo(f"Forecast for the whole month: {_money(found['total'])} {currency} ({error}).")


def _money(text: str) -> str:
    return f"{Decimal(text):,.2f}"


def _sum(costs: Mapping[str, str], names: tuple[str, ...] | None = None) -> Decimal:
    return sum((Decimal(costs.get(name, "0")) for name in names or tuple(costs)), Decimal())


def _wasted(costs: Mapping[str, str]) -> str:
    return _money(str(_sum(costs, _WASTED)))
