"""Running pods without progress, unused GPUs, and the request to an owner to look at a job."""

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.completion import JOB
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes

_HOUR = 3600
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_CLUSTER = click.option("--cluster", help="Filter by cluster. Default: all that are not simulated.")


@click.command()
@click.option("--minutes", type=click.IntRange(5, 24 * 60), default=15, show_default=True, help="Without progress.")
@_CLUSTER
@_JSON
@click.pass_obj
def stalled(choice: ServerOptions, minutes: int, cluster: str | None, as_json: bool) -> None:
    """List running pods that seem to make no progress, with the evidence, oldest first.

    Signs: no new metric or unused GPUs for so many minutes, a silent log for twice as long, or slower than the other
    pods of its task. A pod is compared with itself: shorter pauses than three times its longest one are no sign.
    """
    found = client_of(choice).get("stalled-pods", minutes=str(minutes), cluster=cluster)
    if as_json:
        output.as_json(found)
        return
    for one in found["pods"]:
        pod = strip_control_codes(f"{one['job_name']} {one['task']}-{one['index']}")
        click.echo(f"{pod} on {one['node']}, owner {strip_control_codes(one['owner'])}")
        for sign in one["signs"]:
            click.echo(f"  {output.moment(sign['since'])}  {strip_control_codes(sign['text'])}")
    if not found["pods"]:
        click.echo(f"None of {found['judged']} running pods shows a sign.")
    elif found["is_cut"]:
        click.echo("There are more.")


@click.command()
@_CLUSTER
@click.option("--queue", help="Filter by queue.")
@click.option("--tenant", help="Filter by tenant.")
@_JSON
@click.pass_obj
def unused(choice: ServerOptions, /, as_json: bool, **query: str | None) -> None:
    """List pods that hold GPUs now without using them, those with most GPU time first."""
    found = client_of(choice).get("unused-gpus", **query)["pods"]
    if as_json:
        output.as_json(found)
        return
    rows = [
        (
            strip_control_codes(f"{one['job_name']} {one['task']}-{one['index']}"),
            *(strip_control_codes(one[name]) for name in ("owner", "queue", "node")),
            f"{one['gpus']:g}",
            output.moment(one["since"]),
            f"{one['gpu_seconds'] / _HOUR:.1f}",
            one["reason"],
        )
        for one in found
    ]
    heads = ("POD", "OWNER", "QUEUE", "NODE", "GPUS", "SINCE", "GPU HOURS", "REASON")
    output.table(heads, rows, "No GPUs are unused.")


@click.command()
@click.argument("job", type=JOB)
@click.option(
    "--because", type=click.Choice(["stalled", "unused"]), default="stalled", show_default=True, help="The reason."
)
@click.pass_obj
def ask_owner(choice: ServerOptions, job: str, because: str) -> None:
    """Ask the owner of JOB (a name or uid) to look at it. At most once in 24 hours."""
    client = client_of(choice)
    found = client.job(job)
    client.post(f"jobs/{found['uid']}/reminders", {"cause": because})
    click.echo("The owner gets a notification.")
