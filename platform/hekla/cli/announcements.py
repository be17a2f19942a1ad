"""Announcements: what operators tell people."""

from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_announcements(choice: ServerOptions, as_json: bool) -> None:
    """List the announcements in force for you; for those who write them, all."""
    found = client_of(choice).get("announcements")
    if as_json:
        output.as_json(found)
        return
    rows = [
        (
            *(one["uid"], one["level"], ", ".join(one["tenants"]) or "everybody"),
            *(output.moment(one["begin_at"]), output.moment(one["end_at"]) if one["end_at"] else "withdrawn"),
            strip_control_codes(one["text"]),
        )
        for one in found
    ]
    output.table(("ID", "LEVEL", "FOR", "FROM", "UNTIL", "TEXT"), rows, "No announcements.")


@click.command()
@click.argument("text")
@click.option("--chinese", "text_zh", help="The text in Chinese.")
@click.option("--level", type=click.Choice(["info", "warning", "critical"]), default="info", show_default=True)
@click.option("--from", "begin_at", help="For example 2026-01-31T08:00:00Z. Default: now.")
@click.option("--until", "end_at", help="For example 2026-01-31T18:00:00Z. Default: until it is withdrawn.")
@click.option("--tenant", "tenants", multiple=True, help="Only for this tenant (short name). May be repeated.")
@click.pass_obj
def create(choice: ServerOptions, /, text: str, tenants: tuple[str, ...], **fields: str | None) -> None:
    """Announce TEXT, as a banner on the pages of everybody or of these tenants."""
    body: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
    found = client_of(choice).post("announcements", {"text": text, "tenants": list(tenants), **body})
    click.echo(f"Announced from {output.moment(found['begin_at'])}: {found['uid']}")


@click.command()
@click.argument("uid", type=click.UUID)
@click.pass_obj
def withdraw(choice: ServerOptions, uid: object) -> None:
    """Withdraw the announcement UID."""
    client_of(choice).delete(f"announcements/{uid}")
    click.echo("Withdrawn.")
