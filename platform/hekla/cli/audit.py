"""The audit log."""

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes


@click.command()
@click.option("--person", help="Filter by user name.")
@click.option("--kind", help="Filter by event kind, for example TokenCreated.")
@click.option("--tenant", help="Filter by tenant (short name).")
@click.option("--object", "about", help="Filter by part of the object's name, or by its subject, such as queue:7.")
@click.option("--since", help="First day, for example 2026-01-31.")
@click.option("--until", help="Last day.")
@click.option(
    "--most", type=click.IntRange(1, 200), default=50, show_default=True, help="Maximum number of rows, newest first."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_events(choice: ServerOptions, /, about: str | None, most: int, as_json: bool, **filters: str | None) -> None:
    """List the audit log. Tenant admins see their tenants. Operators and platform admins see everything."""
    found = client_of(choice).get("audit", object=about, limit=most, **filters)
    if as_json:
        output.as_json(found)
        return
    rows = [(output.moment(a["at"]), a["kind"], a["tenant"] or "–", strip_control_codes(a["sentence"])) for a in found]
    output.table(("TIME", "KIND", "TENANT", "EVENT"), rows, "No matching events.")
