"""Who did what."""

import json
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import Choice
from hekla.lib.text import strip_control_codes


@click.command()
@click.option("--person", help="Exactly this user name.")
@click.option("--kind", help="As in TokenCreated.")
@click.option("--tenant", help="The tenant's short name.")
@click.option("--most", type=click.IntRange(1, 200), default=50, show_default=True, help="So many, newest first.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_events(
    choice: Choice, person: str | None, kind: str | None, tenant: str | None, most: int, as_json: bool
) -> None:
    """Who did what: in their tenants for their admins, everywhere for operators and admins of the platform."""
    found = client_of(choice).get("audit", person=person, kind=kind, tenant=tenant, limit=most)
    if as_json:
        output.as_json(found)
        return
    rows = [(output.moment(a["at"]), _who(a), a["kind"], a["tenant"] or "–", _facts(a["facts"])) for a in found]
    output.table(("WHEN", "WHO", "WHAT", "TENANT", "FACTS"), rows, "No matching events.")


def _who(act: dict[str, Any]) -> str:
    return f"{act['acting_by']} for {act['person']}" if act["acting_by"] else str(act["person"])


def _facts(facts: dict[str, Any]) -> str:
    filled = {name: value for name, value in facts.items() if value}
    return strip_control_codes(json.dumps(filled, ensure_ascii=False))[:100] if filled else "–"
