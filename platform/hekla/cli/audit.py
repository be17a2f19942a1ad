"""The audit log."""

import json
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import Choice
from hekla.lib.text import strip_control_codes


@click.command()
@click.option("--person", help="Filter by user name.")
@click.option("--kind", help="Filter by event kind, for example TokenCreated.")
@click.option("--tenant", help="Filter by tenant (short name).")
@click.option(
    "--most", type=click.IntRange(1, 200), default=50, show_default=True, help="Maximum number of rows, newest first."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_events(
    choice: Choice, person: str | None, kind: str | None, tenant: str | None, most: int, as_json: bool
) -> None:
    """List the audit log. Tenant admins see their tenants. Operators and platform admins see everything."""
    found = client_of(choice).get("audit", person=person, kind=kind, tenant=tenant, limit=most)
    if as_json:
        output.as_json(found)
        return
    rows = [(output.moment(a["at"]), _who(a), a["kind"], a["tenant"] or "–", _facts(a["facts"])) for a in found]
    output.table(("TIME", "PERSON", "EVENT", "TENANT", "DETAILS"), rows, "No matching events.")


def _who(act: dict[str, Any]) -> str:
    return f"{act['acting_by']} for {act['person']}" if act["acting_by"] else str(act["person"])


def _facts(facts: dict[str, Any]) -> str:
    filled = {name: value for name, value in facts.items() if value}
    return strip_control_codes(json.dumps(filled, ensure_ascii=False))[:100] if filled else "–"
