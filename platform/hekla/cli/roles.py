"""Roles and their permissions."""

from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import Choice


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_roles(choice: Choice, as_json: bool) -> None:
    """List the permissions of each role."""
    found = client_of(choice).get("roles")
    if as_json:
        output.as_json(found)
        return
    for place in dict.fromkeys(role["place"] for role in found):
        _print([role for role in found if role["place"] == place], place)


def _print(held: list[dict[str, Any]], place: str) -> None:
    permissions = dict.fromkeys(permission for role in held for permission in role["permissions"])
    rows = [(one, *("yes" if one in role["permissions"] else "–" for role in held)) for one in permissions]
    output.table((f"{place.upper()} ROLES", *(role["role"].upper() for role in held)), rows, "")
    click.echo()
