"""Actions on a submitted job."""

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.completion import JOB
from hekla.cli.servers import Choice
from hekla.client.documents import JobDetail


@click.command()
@click.argument("job", type=JOB)
@click.pass_obj
def abort(choice: Choice, job: str) -> None:
    """Abort JOB (a name or uid). It can be resumed."""
    _tell(client_of(choice).abort(job))


@click.command()
@click.argument("job", type=JOB)
@click.pass_obj
def resume(choice: Choice, job: str) -> None:
    """Resume an aborted JOB (a name or uid)."""
    _tell(client_of(choice).resume(job))


@click.command()
@click.argument("job", type=JOB)
@click.option("--task", help="Only the pods of this task.")
@click.option("--index", type=click.IntRange(0), help="Only this replica of the task, counted from 0.")
@click.pass_obj
def restart(choice: Choice, job: str, task: str | None, index: int | None) -> None:
    """Restart JOB (a name or uid), or a part of it while the rest keeps running."""
    if task is None and index is not None:
        raise click.UsageError("Say with --task of which task this is a replica.")
    _tell(client_of(choice).restart(job, task, index))


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("job")
@click.argument("number", type=int)
@click.pass_obj
def set_priority(choice: Choice, job: str, number: int) -> None:
    """Change the priority of JOB (a name or uid). Higher priorities start first in a queue."""
    found = client_of(choice).set_priority(job, number)
    click.echo(f"{found['name']} has priority {found['priority']}.")


@click.command()
@click.argument("job", type=JOB)
@click.pass_obj
def delete(choice: Choice, job: str) -> None:
    """Delete a finished JOB (a name or uid) and its files. Logs and history are kept for the retention period."""
    client = client_of(choice)
    found = client.job(job)
    client.forget(found)
    click.echo(f"{found['name']} is deleted.")
    deleted = client.get(f"jobs/{found['uid']}")
    click.echo(
        f"Logs are kept until {output.moment(deleted['logs_until'])}, its history until "
        f"{output.moment(deleted['history_until'])}: hekla job list --deleted, hekla job show {found['uid']}"
    )


def _tell(job: JobDetail) -> None:
    click.echo(f"{job['name']} is {output.phase(job['phase'])}.")
