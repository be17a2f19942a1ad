"""Federated queues, of several clusters: a submitted job goes to the queue in which it starts first."""

from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import Choice
from hekla.lib.text import strip_control_codes


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_federated_queues(choice: Choice, as_json: bool) -> None:
    """List the federated queues that you may submit to."""
    found = client_of(choice).spans()
    if as_json:
        output.as_json(found)
        return
    rows = [(one["name"], _members(one), strip_control_codes(one["description"])[:80]) for one in found]
    output.table(("NAME", "QUEUES", "DESCRIPTION"), rows, "No federated queues.")


def _members(one: dict[str, Any]) -> str:
    closed = {True: "", False: " (closed)"}
    return ", ".join(f"{each['queue']} on {each['cluster']}{closed[each['is_open']]}" for each in one["queues"])


@click.command()
@click.argument("name")
@click.option("--queue", "queues", multiple=True, help="A member queue. Repeat the option for each cluster.")
@click.option("--description", help="Purpose.")
@click.option("--tenant", "tenants", multiple=True, help="Allow this tenant (short name). May be repeated.")
@click.option("--everybody", is_flag=True, help="Allow all tenants.")
@click.pass_obj
def set_federated_queue(
    choice: Choice,
    /,
    name: str,
    queues: tuple[str, ...],
    description: str | None,
    tenants: tuple[str, ...],
    everybody: bool,
) -> None:
    """Create or change the federated queue NAME. The queues named here replace its present ones."""
    if tenants and everybody:
        raise click.UsageError("Either --tenant or --everybody.")
    client, body = client_of(choice), {"members": list(queues)} if queues else {}
    body |= {"tenants": list(tenants)} if tenants or everybody else {}
    whole: dict[str, Any] = body | ({} if description is None else {"description": description})
    is_there = any(one["name"] == name for one in client.spans())
    found = client.patch(f"spans/{name}", whole) if is_there else client.post("spans", {"name": name, **whole})
    click.echo(f"{name}: {_members(found)}.")


@click.command()
@click.argument("name")
@click.pass_obj
def delete(choice: Choice, /, name: str) -> None:
    """Delete the federated queue NAME. Its queues and their jobs stay."""
    client_of(choice).delete(f"spans/{name}")
    click.echo(f"{name} is deleted.")
