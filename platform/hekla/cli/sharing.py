"""Shared terminals and sessions, the recordings of shared terminals, and forks."""

from pathlib import Path
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import Client, Failure, client_of
from hekla.cli.completion import JOB
from hekla.cli.pods import only_task
from hekla.cli.saving import save_new
from hekla.cli.servers import ServerOptions
from hekla.cli.sessions import TOOLS, print_url

_ROLES = ("observer", "peer", "owner")
_MOST_HOURS = 24


@click.command()
@click.argument("job", type=JOB)
@click.argument("person")
@click.option("--role", type=click.Choice(_ROLES), default="observer", show_default=True, help="What they may do.")
@click.option("--hours", type=click.IntRange(1, _MOST_HOURS), default=1, show_default=True, help="For how long.")
@click.option("--session", type=click.UUID, help="Guest this session. Default: your terminal.")
@click.option("--terminal", type=click.UUID, help="Guest this terminal, if there are several.")
@click.pass_obj
def invite(
    choice: ServerOptions, job: str, person: str, role: str, hours: int, session: object, terminal: object
) -> None:
    """Invite PERSON (a user name) to your terminal in a pod of JOB (a name or uid), or to a session."""
    client = client_of(choice)
    place = f"jobs/{client.job(job)['uid']}"
    target = {"session": str(session)} if session else {"terminal": str(terminal or _own_terminal(client, place))}
    client.post(f"{place}/guests", {**target, "person": person, "guest_role": role, "hours": hours})
    click.echo(f"Invited {person}. It opens once they accept.")


@click.command()
@click.argument("job", type=JOB, required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_invitations(choice: ServerOptions, job: str | None, as_json: bool) -> None:
    """List the invitations to you, or those to terminals and sessions of JOB (a name or uid)."""
    client = client_of(choice)
    found = client.get(f"jobs/{client.job(job)['uid']}/guests" if job else "guests")
    if as_json:
        output.as_json(found)
        return
    rows = [
        (one["uid"], one["job_name"], one["tool"], one["owner"], one["person"], one["guest_role"], one["state"])
        for one in found
    ]
    output.table(("INVITATION", "JOB", "WHAT", "OWNER", "PERSON", "ROLE", "STATE"), rows, "No invitations.")


@click.command()
@click.argument("invitation", type=click.UUID)
@click.pass_obj
def accept(choice: ServerOptions, invitation: object) -> None:
    """Accept INVITATION (a uid), and print a URL for your browser."""
    client = client_of(choice)
    client.post(f"guests/{invitation}/accept", {})
    print_url(client.post(f"guests/{invitation}/url", {}))


@click.command()
@click.argument("invitation", type=click.UUID)
@click.pass_obj
def end_invitation(choice: ServerOptions, invitation: object) -> None:
    """End INVITATION (a uid): decline your own, or revoke that of another person."""
    client_of(choice).delete(f"guests/{invitation}")
    click.echo("The invitation has ended.")


@click.command()
@click.argument("job", type=JOB)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_recordings(choice: ServerOptions, job: str, as_json: bool) -> None:
    """List the recordings of shared terminals of JOB (a name or uid)."""
    client = client_of(choice)
    found = client.get(f"jobs/{client.job(job)['uid']}/recordings")
    if as_json:
        output.as_json(found)
        return
    rows = [
        (one["uid"], f"{one['task']}-{one['index']}", ", ".join(one["people"]), output.moment(one["started_at"]))
        for one in found
    ]
    output.table(("RECORDING", "POD", "PEOPLE", "STARTED"), rows, "No recordings.")


@click.command()
@click.argument("recording", type=click.UUID)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.pass_obj
def save_recording(choice: ServerOptions, recording: object, file: Path) -> None:
    """Save RECORDING (a uid) as FILE, in the format asciicast v2."""
    save_new(client_of(choice).read_bytes(f"recordings/{recording}/cast"), file)


@click.command()
@click.argument("job", type=JOB)
@click.option("--task", help="Task of the pod. Required if the job has several.")
@click.option("--index", type=click.IntRange(0), default=0, show_default=True, help="Replica, counted from 0.")
@click.option("--tool", type=click.Choice(TOOLS), help="Open this tool once the files are there.")
@click.option("--only-files", is_flag=True, help="Do not run the program of JOB; one pod without GPUs.")
@click.pass_obj
def fork(choice: ServerOptions, job: str, task: str | None, index: int, tool: str | None, only_files: bool) -> None:
    """Submit a job like JOB (a name or uid). The files of one of its pods are copied once it runs."""
    client = client_of(choice)
    found = client.job(job)
    request = {"task": task or only_task(found), "index": index, "only_files": only_files}
    request |= {"open_tool": tool} if tool else {}
    made = client.post(f"jobs/{found['uid']}/forks", request)
    click.echo(f"Submitted {made['name']}, a fork of {found['name']}.")


def _own_terminal(client: Client, place: str) -> str:
    """The only open terminal of this person. Raises Failure."""
    me = client.me()["username"]
    own: list[dict[str, Any]] = [one for one in client.get(f"{place}/terminals") if one["owner"] == me]
    if len(own) != 1:
        raise Failure(f"You have {len(own)} open terminals in pods of this job. Open one, or name it by --terminal.")
    return str(own[0]["uid"])
