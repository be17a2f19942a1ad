"""Admin commands for people."""

from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import Choice
from hekla.lib.text import strip_control_codes


@click.command()
@click.argument("username")
@click.pass_obj
def reset_factor(choice: Choice, username: str) -> None:
    """Turn off two-factor authentication of USERNAME. For platform admins. On the console's own machine it also
    helps the only admin.
    """
    client_of(choice).delete(f"people/{quote(username, safe='')}/second-factor")
    click.echo(f"Two-factor authentication turned off for {username}.")


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--tenant", help="Tenant of rows without one (short name).")
@click.option("--dry-run", is_flag=True, help="Preview the import. Change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def import_people(choice: Choice, file: Path, tenant: str | None, dry_run: bool, as_json: bool) -> None:
    """Import people from a CSV FILE. Its first line names the columns. username or email is required. name, role,
    tenant, department (of the tenant), and a quota (jobs, sessions, gpu_hours, resources) are optional. Links of
    invitations are printed once. The exit status is 1 if a row is wrong.
    """
    client = client_of(choice)
    found = client.post_csv("people/import", file.read_bytes(), tenant=tenant, dry_run="1" if dry_run else None)
    if as_json:
        output.as_json(found)
    else:
        output.table(("LINE", "PERSON", "TENANT", "RESULT", "NOTE"), [_row(one, tenant) for one in found], "No people.")
        click.echo(", ".join(f"{what}: {count}" for what, count in Counter(one["outcome"] for one in found).items()))
    if any(one["outcome"] == "wrong" for one in found):
        raise click.exceptions.Exit(1)


def _row(one: dict[str, Any], tenant: str | None) -> tuple[Any, ...]:
    cells = one["row"]
    who = cells.get("username") or cells.get("email") or "–"
    wrong = [f"{error['path']}: {error['message']}".removeprefix(": ") for error in one["problems"]]
    note = "; ".join([*wrong, *filter(None, (one["note"], one["link"], "is being mailed" if one["sent"] else ""))])
    return (
        one["line"],
        strip_control_codes(who),
        strip_control_codes(cells.get("tenant") or tenant or "–"),
        one["outcome"],
        strip_control_codes(note),
    )
