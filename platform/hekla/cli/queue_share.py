"""Queues: why a queue deserves what it deserves."""

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes


@click.command()
@click.argument("name")
@click.option("--resource", help="For example nvidia.com/gpu or cpu. Default: the first kind of GPUs, else cpu.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def share(choice: ServerOptions, name: str, resource: str | None, as_json: bool) -> None:
    """Show how the scheduler computes what queue NAME deserves of one resource, with the queues beside it."""
    found = client_of(choice).get(f"queues/{name}/share", resource=resource)
    if as_json:
        output.as_json(found)
        return
    for sentence in found["sentences"]:
        click.echo(f"- {strip_control_codes(sentence)}")
    click.echo()
    amounts = ("setting", "guarantee", "limit", "request", "allocated", "deserved")
    rows = [
        (
            strip_control_codes(one["name"]) or f"{one['count']} other queues",
            one["weight"],
            *("no limit" if one[amount] is None else one[amount] for amount in amounts),
        )
        for one in found["queues"]
    ]
    output.table(("QUEUE", "WEIGHT", *(amount.upper() for amount in amounts)), rows, "")
