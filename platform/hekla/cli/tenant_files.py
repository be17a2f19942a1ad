"""The files of a tenant's jobs: their limit, and the jobs with the most."""

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.files import human_size
from hekla.cli.quotas import BOUND
from hekla.cli.servers import ServerOptions


@click.command()
@click.argument("tenant")
@click.option("--limit-gib", type=BOUND, help="Refuse uploads from this size on (operators). none: no limit.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def files(choice: ServerOptions, tenant: str, limit_gib: int | None, as_json: bool) -> None:
    """Show how much room the files of TENANT (its short name) take, and its largest jobs."""
    client = client_of(choice)
    is_set = click.get_current_context().get_parameter_source("limit_gib") is not click.core.ParameterSource.DEFAULT
    address = f"tenants/{tenant}/files"
    found = client.put(address, {"limit_gib": limit_gib}) if is_set else client.get(address)
    if as_json:
        output.as_json(found)
        return
    limit = "" if found["limit_gib"] is None else f" of {found['limit_gib']} GiB"
    click.echo(f"{human_size(found['size_bytes'])}{limit}{'' if found['complete'] else ' (not all is measured)'}")
    rows = [
        (job["name"], job["owner"], job["phase"], human_size(job["size_bytes"]), str(job["files"]))
        for job in found["jobs"]
    ]
    output.table(("JOB", "OWNER", "PHASE", "SIZE", "FILES"), rows, "No files were measured yet.")
