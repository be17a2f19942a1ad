"""What can be done with a job that was submitted."""

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import Choice


@click.command()
@click.argument("job")
@click.pass_obj
def abort(choice: Choice, job: str) -> None:
    """Stop JOB (a name or uid); it can be resumed."""
    _act(choice, job, "AbortJob")


@click.command()
@click.argument("job")
@click.pass_obj
def resume(choice: Choice, job: str) -> None:
    """Let an aborted JOB (a name or uid) go on."""
    _act(choice, job, "ResumeJob")


@click.command()
@click.argument("job")
@click.option("--task", help="Only the pods of this task.")
@click.option("--index", type=click.IntRange(0), help="Only this replica of the task, counted from 0.")
@click.pass_obj
def restart(choice: Choice, job: str, task: str | None, index: int | None) -> None:
    """Start JOB (a name or uid) again from the beginning, or a part of it while the rest goes on."""
    if task is None:
        if index is not None:
            raise click.UsageError("Say with --task of which task this is a replica.")
        _act(choice, job, "RestartJob")
    elif index is None:
        _act(choice, job, "RestartTask", task=task)
    else:
        _act(choice, job, "RestartPod", task=task, index=index)


@click.command()
@click.argument("job")
@click.pass_obj
def delete(choice: Choice, job: str) -> None:
    """Delete a finished JOB (a name or uid) with its files; logs and history stay for a time."""
    client = client_of(choice)
    found = client.job(job)
    client.delete(f"jobs/{found['uid']}")
    click.echo(f"{found['name']} is deleted.")
    kept = client.job(found["uid"])
    click.echo(
        f"Its logs are kept until {output.moment(kept['logs_until'])}, its history until "
        f"{output.moment(kept['history_until'])}: hekla jobs --deleted, hekla job {found['uid']}"
    )


def _act(choice: Choice, job: str, action: str, **part: str | int) -> None:
    client = client_of(choice)
    found = client.post(f"jobs/{client.job(job)['uid']}/actions", {"action": action, **part})
    click.echo(f"{found['name']} is {output.phase(found['phase'])}.")
