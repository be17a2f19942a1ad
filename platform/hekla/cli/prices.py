"""Price lists."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import Client, Failure, client_of
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes

_MOST = 1000
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command()
@_JSON
@click.pass_obj
def list_prices(choice: ServerOptions, as_json: bool) -> None:
    """List the price lists, newest first."""
    found = client_of(choice).pages("price-lists", _MOST)
    if as_json:
        output.as_json(found)
        return
    rows = [
        (
            strip_control_codes(one["name"]),
            one["currency"],
            output.moment(one["begin_at"]),
            one["created_by"],
            one["uid"],
        )
        for one in found
    ]
    output.table(("NAME", "CURRENCY", "VALID FROM", "BY", "UID"), rows, "No price lists. Nothing has a price.")


@click.command()
@click.argument("prices")
@_JSON
@click.pass_obj
def show(choice: ServerOptions, prices: str, as_json: bool) -> None:
    """Print the prices of the list PRICES (a name or uid)."""
    client = client_of(choice)
    found = client.get(_path(client, prices))
    if as_json:
        output.as_json(found)
        return
    spec = found["spec"]
    end = f" to {output.moment(found['end_at'])}" if found["end_at"] else ""
    click.echo(f"{strip_control_codes(found['name'])}: valid from {output.moment(found['begin_at'])}{end}.")
    rows = [("CPU core hour", spec["cpu"]), ("GiB memory hour", spec["memory"])]
    rows += [(f"GPU hour, {strip_control_codes(model)}", price) for model, price in spec["models"].items()]
    rows.append(("GPU hour", spec["gpu"]))
    output.table(("RESOURCE", found["currency"]), rows, "")
    factors = [(f"{one['days']}, {one['begin']:02}:00 to {one['end']:02}:00", one["factor"]) for one in spec["windows"]]
    factors += [(f"queue {queue}", factor) for queue, factor in spec["queues"].items()]
    if factors:
        click.echo()
        output.table(("WHEN OR WHERE", "FACTOR"), factors, "")


@click.command()
@click.argument("name")
@click.option("--currency", required=True, help="A label, for example EUR. Nothing is converted.")
@click.option("--from", "begin_at", required=True, help="Valid from, for example 2027-01-01T00:00:00+01:00.")
@click.option("--cpu", default="0", show_default=True, help="Price of a core hour.")
@click.option("--memory", default="0", show_default=True, help="Price of a GiB hour.")
@click.option("--gpu", default="0", show_default=True, help="Price of an hour of any other GPU.")
@click.option("--model", "models", multiple=True, help="Price by model of GPU, for example H100=3.5. Repeatable.")
@click.option("--queue", "queues", multiple=True, help="Factor of a queue, for example night=0.5. Repeatable.")
@click.option("--hours", "windows", multiple=True, help="Factor of hours, for example 20-6=0.7. Repeatable.")
@click.option(
    "--days", type=click.Choice(("all", "workdays", "weekend")), default="all", help="The days of all --hours."
)
@click.pass_obj
def create(choice: ServerOptions, /, name: str, begin_at: str, **prices: Any) -> None:  # noqa: ANN401
    """Add the price list NAME. It replaces the list before from its begin on; the past does not change."""
    spec = {
        "name": name,
        **{field: prices[field] for field in ("currency", "cpu", "memory", "gpu")},
        "models": _pairs("model", prices["models"]),
        "queues": _pairs("queue", prices["queues"]),
        "windows": [_window(hours, factor, prices["days"]) for hours, factor in _split("hours", prices["windows"])],
    }
    found = client_of(choice).post("price-lists", {"begin_at": begin_at, "spec": spec})
    click.echo(f"{strip_control_codes(found['name'])} is saved: valid from {output.moment(found['begin_at'])}.")


@click.command()
@click.argument("prices")
@click.pass_obj
def delete(choice: ServerOptions, prices: str) -> None:
    """Delete the list PRICES (a name or uid), if it has not begun."""
    client = client_of(choice)
    client.delete(_path(client, prices))
    click.echo(f"{prices} is deleted.")


def _split(option: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    found = [tuple(text.rsplit("=", 1)) for text in texts]
    if any(len(pair) != 2 for pair in found):  # noqa: PLR2004
        raise click.UsageError(f"--{option} needs a name, = and a number.")
    return [(name, number) for name, number in found]


def _pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    return dict(_split(option, texts))


def _window(hours: str, factor: str, days: str) -> Mapping[str, Any]:
    begin, _dash, end = hours.partition("-")
    if not (begin.isdecimal() and end.isdecimal()):
        raise click.UsageError("--hours needs two hours and a factor, for example 20-6=0.7.")
    return {"days": days, "begin": int(begin), "end": int(end), "factor": factor}


def _path(client: Client, prices: str) -> str:
    matching = [one for one in client.pages("price-lists", _MOST) if prices in (one["name"], one["uid"])]
    if not matching:
        raise Failure(f"Unknown price list “{prices}”. `hekla price list` lists them.")
    if len(matching) > 1:
        raise Failure(f"Several price lists are named “{prices}”. Use the uid.")
    return f"price-lists/{matching[0]['uid']}"
