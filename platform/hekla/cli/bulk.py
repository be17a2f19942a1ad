"""One action on many jobs."""

import sys
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.completion import JOB
from hekla.cli.job_filters import filter_options
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes

_ACTIONS = {
    "abort": "AbortJob",
    "resume": "ResumeJob",
    "restart": "RestartJob",
    "priority": "SetPriority",
    "delete": "Delete",
}


@click.command()
@click.argument("action", type=click.Choice(tuple(_ACTIONS)))
@click.argument("names", metavar="[JOB]...", nargs=-1, type=JOB)
@filter_options
@click.option("--priority", type=int, help="New priority, for the action `priority`.")
@click.option("--dry-run", is_flag=True, help="List the selected jobs. Change nothing.")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def bulk(
    choice: ServerOptions,
    /,
    action: str,
    names: tuple[str, ...],
    priority: int | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **filters: Any,  # noqa: ANN401
) -> None:
    """Run ACTION on several jobs, selected by name, by filter options, or both.

    The limit is 1,000 jobs. Jobs are changed one by one. The exit status is 1 if any change failed.
    """
    client = client_of(choice)
    uids = [client.job(name)["uid"] for name in names]
    request = {"action": _ACTIONS[action], "priority": priority}
    named = {"uids": uids} if uids else {}
    meant = client.post("jobs/bulk", {**request, **named, "dry_run": True}, **filters)
    if dry_run:
        _print(meant, as_json=as_json)
        return
    found = [one["uid"] for one in meant["outcomes"]]
    if not found:
        click.echo("No matching jobs.")
        return
    if not yes:
        click.confirm(f"{action} for {len(found)} job{'s' if len(found) > 1 else ''}?", abort=True, err=True)
    done = client.post("jobs/bulk", {**request, "uids": found})
    _print(done | {"left": meant["left"]}, as_json=as_json)
    sys.exit(0 if all(one["done"] for one in done["outcomes"]) else 1)


def _print(answer: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        output.as_json(answer)
        return
    words = {True: "done", None: ""}
    rows = [
        (
            one["name"] or one["uid"],
            one["tenant"],
            output.phase(one["phase"]),
            words.get(one["done"], strip_control_codes(one["why"])),
        )
        for one in answer["outcomes"]
    ]
    output.table(("NAME", "TENANT", "PHASE", "RESULT"), rows, "No matching jobs.")
    if answer["left"]:
        click.secho("Note: there are more; these are the first 1,000.", fg="yellow", err=True)
