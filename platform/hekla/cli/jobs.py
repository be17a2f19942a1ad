"""Looking at jobs."""

import sys
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import Choice
from hekla.cli.watch import follow
from hekla.lib.text import plain


@click.command()
@click.option("--phase", multiple=True, help="Only jobs in this phase; may be given several times.")
@click.option("--queue", help="Only jobs of this queue.")
@click.option("--tenant", help="Only jobs of this tenant (short name).")
@click.option("--mine", is_flag=True, help="Only your own.")
@click.option("--deleted", is_flag=True, help="Those that were deleted and are still kept.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="At most so many.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def jobs(
    choice: Choice,
    phase: tuple[str, ...],
    queue: str | None,
    tenant: str | None,
    mine: bool,
    deleted: bool,
    limit: int,
    as_json: bool,
) -> None:
    """List jobs, newest first."""
    flags = {"mine": "1" if mine else None, "deleted": "1" if deleted else None}
    found = client_of(choice).pages("jobs", limit, phase=list(phase), queue=queue, tenant=tenant, **flags)
    if as_json:
        output.as_json(found)
        return
    heads = ("NAME", "PHASE", "TENANT", "QUEUE", "PODS", "OWNER", "SUBMITTED")
    rows = [
        (j["name"], output.phase(j["phase"]), j["tenant"], _queue(j), j["replicas"], j["owner"], _when(j))
        for j in found
    ]
    output.table(heads, rows, "There are no such jobs. `hekla submit FILE` submits one.")


@click.command()
@click.argument("name", metavar="JOB")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def job(choice: Choice, name: str, as_json: bool) -> None:
    """Show JOB (a name or uid): its state, why it waits, its pods."""
    found = client_of(choice).job(name)
    if as_json:
        output.as_json(found)
        return
    for label, value in _facts(found):
        click.echo(f"{label:<10} {value}")
    for reason in found["waiting"]:
        click.echo(f"{'Waits':<10} {reason['sentence']}")
    click.echo()
    heads = ("POD", "PHASE", "ATTEMPT", "NODE", "EXIT", "STARTED", "MESSAGE")
    rows = [
        (
            f"{pod['task']}-{pod['index']}",
            output.phase(pod["phase"]),
            pod["attempt"],
            pod["node"] or "–",
            "–" if pod["exit_code"] is None else pod["exit_code"],
            output.moment(pod["started_at"]),
            plain(pod["message"])[:80],
        )
        for pod in found["pods"]
    ]
    output.table(heads, rows, "It has no pods yet.")


@click.command()
@click.argument("name", metavar="JOB")
@click.pass_obj
def watch(choice: Choice, name: str) -> None:
    """Follow JOB (a name or uid) until it ends; the exit status is 0 where it completed."""
    client = client_of(choice)
    sys.exit(follow(client, client.job(name)))


def _facts(found: dict[str, Any]) -> list[tuple[str, str]]:
    why = plain(": ".join(filter(None, (found["reason"], found["message"]))))
    return [
        ("Job", f"{found['name']}  ({found['uid']})"),
        ("Phase", output.phase(found["phase"]) + (f"  {why}" if why else "")),
        ("Tenant", f"{found['tenant']}, submitted by {found['owner']}"),
        ("Queue", _queue(found)),
        ("Submitted", output.moment(found["submitted_at"])),
        ("Started", output.moment(found["started_at"])),
        ("Deadline", output.moment(found["deadline_at"])),
        ("Finished", output.moment(found["finished_at"])),
        *_deletion(found),
    ]


def _deletion(found: dict[str, Any]) -> list[tuple[str, str]]:
    """When it was deleted, or will be; and until when what it left is kept."""
    if not found["deleted_at"]:
        return [("Deleted", f"by itself {output.moment(found['expires_at'])}")] if found["expires_at"] else []
    logs = f"until {output.moment(found['logs_until'])}" if found["logs_until"] else "gone"
    return [
        ("Deleted", output.moment(found["deleted_at"])),
        ("Kept", f"logs {logs}, history until {output.moment(found['history_until'])}"),
    ]


def _queue(found: dict[str, Any]) -> str:
    return f"{found['queue']} (simulated)" if found["is_simulated"] else str(found["queue"])


def _when(found: dict[str, Any]) -> str:
    return output.moment(found["submitted_at"])
