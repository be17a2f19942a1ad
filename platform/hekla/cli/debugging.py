"""Failed pods that stay: continue there, keep them longer, let them go."""

from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import Client, Failure, client_of
from hekla.cli.completion import JOB
from hekla.cli.servers import ServerOptions
from hekla.lib import durations

_POD = click.option(
    "--pod", metavar="TASK-INDEX", help="The failed pod, for example worker-1. Required if several stay."
)


@click.command()
@click.argument("job", type=JOB)
@_POD
@click.pass_obj
def debug(choice: ServerOptions, job: str, pod: str | None) -> None:
    """Submit a job that continues where a pod of JOB (a name or uid) failed, with its files and environment."""
    client = client_of(choice)
    place, task, index = _find(client, job, pod)
    made = client.post(place, {"task": task, "index": index})
    click.echo(f"{made['name']} continues there. It is {output.phase(made['phase'])}.")
    click.echo(f"Once it runs, open a shell: hekla ssh {made['name']}. The failed command is the last in its history.")


@click.command()
@click.argument("job", type=JOB)
@click.argument("time")
@_POD
@click.pass_obj
def keep(choice: ServerOptions, job: str, time: str, pod: str | None) -> None:
    """Keep the files of a failed pod of JOB (a name or uid) for TIME from now, for example 12h or 90m."""
    seconds = durations.seconds(time)
    if not seconds:
        raise click.UsageError("TIME is a duration, for example 90m or 12h.")
    client = client_of(choice)
    place, task, index = _find(client, job, pod)
    found = client.patch(f"{place}/{task}/{index}", {"seconds": int(seconds)})
    click.echo(f"The files of {task}-{index} are kept until {output.moment(found['until'])}.")


@click.command()
@click.argument("job", type=JOB)
@_POD
@click.pass_obj
def discard(choice: ServerOptions, job: str, pod: str | None) -> None:
    """Delete the files of a failed pod of JOB (a name or uid) now. Its log stays."""
    client = client_of(choice)
    place, task, index = _find(client, job, pod)
    client.delete(f"{place}/{task}/{index}")
    click.echo(f"The files of {task}-{index} are deleted.")


def _find(client: Client, job: str, pod: str | None) -> tuple[str, str, int]:
    """The address of the job's failed pods, and the task and index of the one that is meant. Raises Failure."""
    place = f"jobs/{client.job(job)['uid']}/frozen-pods"
    there = {_name(one): one for one in client.get(place) if one["released_at"] is None}
    if not there:
        raise Failure(f"No failed pod of {job} is kept. Submit jobs with keep_failed_seconds to keep them.")
    if pod is None and len(there) > 1:
        raise Failure(f"Several failed pods are kept: {', '.join(there)}. Name one with --pod.")
    if pod is not None and pod not in there:
        raise Failure(f"“{pod}” is not kept. Kept are: {', '.join(there)}.")
    one = there[pod] if pod else next(iter(there.values()))
    return place, str(one["task"]), int(one["index"])


def _name(one: dict[str, Any]) -> str:
    return f"{one['task']}-{one['index']}"
