"""Departments: groups of tenants."""

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import Choice
from hekla.lib.text import strip_control_codes


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_departments(choice: Choice, as_json: bool) -> None:
    """List the departments that you head. Operators and platform admins see all."""
    found = client_of(choice).get("departments")
    if as_json:
        output.as_json(found)
        return
    rows = [
        (one["slug"], strip_control_codes(one["name"]), strip_control_codes(one["description"])[:80]) for one in found
    ]
    output.table(("DEPARTMENT", "NAME", "DESCRIPTION"), rows, "No departments.")


@click.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show(choice: Choice, name: str, as_json: bool) -> None:
    """Show department NAME: its heads, its tenants and the resources allocated to each and in total."""
    found = client_of(choice).get(f"departments/{name}")
    if as_json:
        output.as_json(found)
        return
    click.echo(f"{strip_control_codes(found['name'])}, heads: {', '.join(found['heads']) or 'none'}\n")
    uses = [*found["tenants"], {**found["together"], "slug": "together"}]
    rows = [(use["slug"], use["running"], use["waiting"], output.amounts(use["held"])) for use in uses]
    output.table(("TENANT", "RUNNING", "PENDING", "ALLOCATED"), rows, "")
