"""Queues and machines."""

import click

from hekla.cli import output
from hekla.cli.client import Client, client_of
from hekla.cli.servers import Choice
from hekla.lib.text import plain


def make_queue(client: Client, text: bytes, *, as_json: bool) -> None:
    """Make the queue of a manifest."""
    made = client.post_yaml("queues", text)
    for warning in made["warnings"]:
        click.secho(f"Note: {warning}", fg="yellow", err=True)
    if as_json:
        output.as_json(made)
    else:
        click.echo(f"Queue {made['name']} was made: {client.server.url}/queues/{made['name']}/")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def queues(choice: Choice, as_json: bool) -> None:
    """List the queues that you may submit to."""
    found = client_of(choice).get("queues")
    if as_json:
        output.as_json(found)
        return
    rows = [
        (
            queue["name"],
            queue["cluster"],
            "open" if queue["is_open"] else click.style("closed", fg="red"),
            queue["weight"],
            output.amounts(queue["capability"]),
            queue["description"],
        )
        for queue in found
    ]
    heads = ("NAME", "CLUSTER", "STATE", "WEIGHT", "AT MOST", "DESCRIPTION")
    output.table(heads, rows, "There are no queues that you may submit to. Ask a platform admin.")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def nodes(choice: Choice, as_json: bool) -> None:
    """List the machines, what each can give, and what of it is in use."""
    found = client_of(choice).get("nodes")
    if as_json:
        output.as_json(found)
        return
    rows = [
        (
            node["name"],
            f"{node['cluster']} (simulated)" if node["is_simulated"] else node["cluster"],
            _state(node["is_ready"], node["is_cordoned"]),
            output.amounts(node["allocatable"]),
            output.amounts(node["used"]),
            plain(node["message"]),
        )
        for node in found
    ]
    output.table(("NAME", "CLUSTER", "STATE", "HAS", "IN USE", "MESSAGE"), rows, "There are no machines.")


def _state(is_ready: bool, is_cordoned: bool) -> str:
    if not is_ready:
        return click.style("not ready", fg="red")
    return click.style("cordoned", fg="yellow") if is_cordoned else "ready"
