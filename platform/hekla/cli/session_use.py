"""Measures: the open sessions of all jobs."""

from collections.abc import Mapping
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes


@click.command()
@click.option("--cluster", help="Filter by cluster. Default: all that are not simulated.")
@click.option("--tenant", help="Filter by tenant (short name).")
@click.option("--person", help="Filter by owner.")
@click.option("--tool", help="Filter by tool, for example jupyterlab.")
@click.option(
    "--by", type=click.Choice(("tool", "tenant", "person")), default="tool", show_default=True, help="Parts to list."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def session_use(choice: ServerOptions, /, as_json: bool, **query: str | None) -> None:
    """Show the open sessions now: who has them, since when nobody uses them, and the GPUs of their pods."""
    found = client_of(choice).get("session-use", **query)
    if as_json:
        output.as_json(found)
        return
    click.echo("The cluster is simulated." if found["is_simulated"] else "", nl=found["is_simulated"])
    heads: tuple[str, ...] = (str(query["by"]).upper(), "SESSIONS", "IDLE", "GPUS", "NOT USED")
    output.table(heads, [_part(one) for one in found["parts"]], "No open sessions.")
    if found["sessions"]:
        click.echo()
        heads = ("TOOL", "OWNER", "TENANT", "POD", "LAST USED", "GPUS", "NOT USED SINCE")
        output.table(heads, [_session(one) for one in found["sessions"]], "")


def _part(one: Mapping[str, Any]) -> tuple[str, ...]:
    numbers = (f"{one[name]:g}" for name in ("sessions", "idle", "gpus", "unused_gpus"))
    return (strip_control_codes(one["name"]), *numbers)


def _session(one: Mapping[str, Any]) -> tuple[str, ...]:
    unused = one["gpus_unused_since"]
    times = (output.moment(one["used_at"]), f"{one['gpus']:g}", output.moment(unused) if unused else "")
    return (one["tool"], one["owner"], one["tenant"], one["pod"], *times)
