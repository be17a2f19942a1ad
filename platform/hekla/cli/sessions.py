"""Sessions: ports and tools of running pods in the browser."""

import time
from collections.abc import Mapping
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import Client, Failure, client_of
from hekla.cli.completion import JOB
from hekla.cli.pods import only_task
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes

TOOLS = ("jupyterlab", "code-server", "tensorboard")
_LOOK_SECONDS = 1.0


@click.command()
@click.argument("job", type=JOB)
@click.option("--tool", type=click.Choice(TOOLS), help="Start this tool in the pod.")
@click.option("--port", type=click.IntRange(1, 65535), help="Open this port of the pod.")
@click.option("--task", help="Task of the pod. Required if the job has several.")
@click.option("--index", type=click.IntRange(0), default=0, show_default=True, help="Replica, counted from 0.")
@click.pass_obj
def open_session(
    choice: ServerOptions, job: str, tool: str | None, port: int | None, task: str | None, index: int
) -> None:
    """Open a port of a running pod of JOB (a name or uid), or a tool in it. Prints a URL that works once."""
    if (tool is None) == (port is None):
        raise click.UsageError("Name either --tool or --port.")
    client = client_of(choice)
    found = client.job(job)
    target = {"tool": tool} if tool else {"tool": "port", "port": port}
    place = f"jobs/{found['uid']}/sessions"
    session = client.post(place, {"task": task or only_task(found), "index": index, **target})
    session = _ready(client, place, session)
    print_url(client.post(f"{place}/{session['uid']}/url", {}))


def print_url(answer: Mapping[str, Any]) -> None:
    """Print the URL, and on standard error what to know before it is opened."""
    if notice := answer.get("notice"):  # servers of before have none
        click.secho(f"Note: {strip_control_codes(str(notice))}", fg="yellow", err=True)
    click.echo(answer["url"])


@click.command()
@click.argument("job", type=JOB)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_sessions(choice: ServerOptions, job: str, as_json: bool) -> None:
    """List the open sessions with pods of JOB (a name or uid)."""
    client = client_of(choice)
    sessions = client.get(f"jobs/{client.job(job)['uid']}/sessions")
    if as_json:
        output.as_json(sessions)
        return
    rows = [
        (one["uid"], f"{one['task']}-{one['index']}", _name(one), one["owner"], one["state"], _when(one))
        for one in sessions
    ]
    output.table(("SESSION", "POD", "TOOL", "OWNER", "STATE", "OPENED"), rows, "No open sessions.")


@click.command()
@click.argument("job", type=JOB)
@click.argument("session", type=click.UUID)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def session_people(choice: ServerOptions, job: str, session: object, as_json: bool) -> None:
    """List who has SESSION (a uid) with a pod of JOB (a name or uid) open, or used it in the last minutes."""
    client = client_of(choice)
    people = client.get(f"jobs/{client.job(job)['uid']}/sessions/{session}/people")
    if as_json:
        output.as_json(people)
        return
    rows = [(one["username"], "yes" if one["is_here"] else "no", output.moment(one["used_at"])) for one in people]
    output.table(("PERSON", "HERE", "USED"), rows, "Nobody has it open.")


@click.command()
@click.argument("job", type=JOB)
@click.argument("session", type=click.UUID)
@click.pass_obj
def end_session(choice: ServerOptions, job: str, session: object) -> None:
    """End SESSION (a uid) with a pod of JOB (a name or uid)."""
    client = client_of(choice)
    client.delete(f"jobs/{client.job(job)['uid']}/sessions/{session}")
    click.echo("The session has ended.")


def _ready(client: Client, place: str, session: dict[str, Any]) -> dict[str, Any]:
    """The session as soon as it is ready. Raises Failure if its tool does not start."""
    while session["state"] == "starting":
        time.sleep(_LOOK_SECONDS)
        session = client.get(f"{place}/{session['uid']}")
    if session["state"] != "ready":
        raise Failure(f"The tool did not start. {strip_control_codes(session['message'])}")
    return session


def _name(session: Mapping[str, Any]) -> str:
    return f"port {session['port']}" if session["tool"] == "port" else str(session["tool"])


def _when(session: Mapping[str, Any]) -> str:
    return output.moment(session["created_at"])
