"""Files of other schedulers that the console stores as workloads of the policy lab."""

import gzip
from base64 import b64encode
from pathlib import Path

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.failing import Failure
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes

_FORMATS = ("sacct", "helios", "philly", "alibaba")
_MAX_BYTES = 16 * 2**20
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--format", "form", type=click.Choice(_FORMATS), required=True, help="Format of FILE.")
@click.option("--name", default="", help="Name of the trace. Default: that of FILE.")
@_JSON
@click.pass_obj
def upload(choice: ServerOptions, file: Path, form: str, name: str, as_json: bool) -> None:
    """Upload FILE, so that experiments can run its jobs (operators and platform admins).

    Formats: sacct (`sacct --parsable2`), helios (cluster_log.csv), philly (cluster_job_log), alibaba (openb_pod_list).
    """
    with file.open("rb") as opened:
        content = opened.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise Failure(f"{file} has more than {_MAX_BYTES // 2**20} MiB.")
    packed = content if content.startswith(b"\x1f\x8b") else gzip.compress(content)
    body = {"name": name or file.name[:100], "format": form, "content": b64encode(packed).decode()}
    found = client_of(choice).post("policy-lab/traces", body)
    if as_json:
        output.as_json(found)
        return
    click.echo(f"{found['uid']}  {found['jobs']:,} jobs, {found['pods']:,} pods")
    if count := found["notes"].get("unreadable"):
        click.echo(f"{count:,} lines could not be read, the first is line {found['first_unreadable']}.")


@click.command()
@click.option("--most", type=click.IntRange(1, 200), default=50, show_default=True, help="Maximum number of rows.")
@_JSON
@click.pass_obj
def list_traces(choice: ServerOptions, most: int, as_json: bool) -> None:
    """List uploaded files of other schedulers, the newest first (operators and platform admins)."""
    found = client_of(choice).get("policy-lab/traces", limit=most)
    if as_json:
        output.as_json(found)
        return
    rows = [
        (
            one["uid"],
            one["format"],
            f"{one['jobs']:,}",
            output.moment(one["starts_at"]),
            output.moment(one["ends_at"]),
            one["owner"] or "–",
            strip_control_codes(one["name"]),
        )
        for one in found
    ]
    output.table(("UID", "FORMAT", "JOBS", "FROM", "UNTIL", "OWNER", "NAME"), rows, "No traces.")


@click.command()
@click.argument("uid", type=click.UUID)
@click.pass_obj
def delete_trace(choice: ServerOptions, uid: str) -> None:
    """Delete the trace UID (its owner and platform admins)."""
    client_of(choice).delete(f"policy-lab/traces/{uid}")
    click.echo("Deleted.")
