"""The idle rule: what keeps a session or a job, and the wish to keep it."""

from collections.abc import Mapping
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import Client, client_of
from hekla.cli.completion import JOB
from hekla.cli.servers import ServerOptions

_UNITS = {"cpu": " %", "gpu": " %", "network": " KiB/min"}
_NEXT = {
    "keep": "In use. Without activity, its owner is warned at {next_at}.",
    "warn": "Idle. Its owner is warned now.",
    "wait": "Idle, and warned. It ends at {next_at}.",
    "end": "Idle, and warned. It ends now.",
}
_HOURS = click.option("--hours", type=click.IntRange(1, 24), default=4, show_default=True, help="For so many hours.")
_BECAUSE = click.option("--because", required=True, help="The reason, which people who see the job can read.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command()
@click.argument("job", type=JOB)
@click.argument("session", type=click.UUID)
@_JSON
@click.pass_obj
def session_activity(choice: ServerOptions, job: str, session: object, as_json: bool) -> None:
    """Show what keeps SESSION (a uid) with a pod of JOB (a name or uid): each signal against its limit."""
    client = client_of(choice)
    _print(client.get(f"jobs/{client.job(job)['uid']}/sessions/{session}/activity"), as_json=as_json)


@click.command()
@click.argument("job", type=JOB)
@click.argument("session", type=click.UUID)
@_HOURS
@_BECAUSE
@click.pass_obj
def keep_session(choice: ServerOptions, job: str, session: object, hours: int, because: str) -> None:
    """Keep SESSION (a uid) with a pod of JOB (a name or uid) open, also if it is idle. Once for each session."""
    client = client_of(choice)
    _keep(client, f"jobs/{client.job(job)['uid']}/sessions/{session}/keep", hours, because)


@click.command()
@click.argument("job", type=JOB)
@_JSON
@click.pass_obj
def job_activity(choice: ServerOptions, job: str, as_json: bool) -> None:
    """Show the use of the GPUs of JOB (a name or uid), and when it would be aborted because they are idle."""
    client = client_of(choice)
    _print(client.get(f"jobs/{client.job(job)['uid']}/gpu-activity"), as_json=as_json)


@click.command()
@click.argument("job", type=JOB)
@_HOURS
@_BECAUSE
@click.pass_obj
def keep_job(choice: ServerOptions, job: str, hours: int, because: str) -> None:
    """Keep JOB (a name or uid), also if its GPUs are idle. Once for each job."""
    client = client_of(choice)
    _keep(client, f"jobs/{client.job(job)['uid']}/keep", hours, because)


def _keep(client: Client, place: str, hours: int, because: str) -> None:
    found = client.post(place, {"hours": hours, "reason": because})
    click.echo(f"Kept until {output.moment(found['keep_until'])}.")


def _print(found: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        output.as_json(found)
        return
    if found["has_rule"]:
        by = " The job chose this." if found["is_chosen"] else ""
        click.echo(f"Warned after {found['idle_minutes']} minutes, ended {found['grace_minutes']} minutes later.{by}")
    if found["step"] is None:
        click.echo("No idle rule applies." if found["has_rule"] else "No idle rule is on.")
        return
    click.echo(_NEXT[found["step"]].format(next_at=output.moment(found["next_at"])))
    click.echo(f"{_reason(found)} {output.moment(found['idle_since'])}.")
    if found["keep_until"]:
        click.echo(f"Kept until {output.moment(found['keep_until'])}: {found['keep_reason']}")
    rows = [
        (
            one["signal"],
            "does not count" if one["limit"] is None else _amount(one, "limit"),
            "not known" if one["most"] is None else _amount(one, "most"),
            output.moment(one["active_at"]),
        )
        for one in found["signals"]
    ]
    output.table(("SIGNAL", "COUNTS FROM", "HIGHEST", "LAST ACTIVE"), rows, "Nothing is recorded yet.")


def _reason(found: Mapping[str, Any]) -> str:
    return {
        "signal": f"Kept by {found['signal']},",
        "unknown": f"Kept because {found['signal']} was not known,",
        "gap": "Kept because nothing was recorded,",
        "start": "No activity since",
    }[found["cause"]]


def _amount(one: Mapping[str, Any], name: str) -> str:
    return f"{one[name]:.0f}{_UNITS.get(one['signal'], '')}"
