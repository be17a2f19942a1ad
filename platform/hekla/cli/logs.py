"""Printing what pods wrote."""

import time
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import Client, Failure, client_of
from hekla.cli.servers import Choice

_LOOK_EVERY_SECONDS = 0.5
_PIECE = 1024 * 1024


@click.command()
@click.argument("job")
@click.option("--task", help="Only this task; needed where there are several.")
@click.option("--index", type=click.IntRange(0), help="Which replica of it.")
@click.option("--attempt", type=click.IntRange(0), help="Which attempt; without it the last.")
@click.option("--follow", "-f", is_flag=True, help="Go on until the pod ends.")
@click.pass_obj
def logs(choice: Choice, job: str, task: str | None, index: int | None, attempt: int | None, follow: bool) -> None:
    """Print what the pods of JOB (a name or uid) wrote; each under its name where there are several."""
    client = client_of(choice)
    found = client.job(job)
    pods = [pod for pod in found["pods"] if task in (None, pod["task"]) and index in (None, pod["index"])]
    if not pods:
        raise Failure(_none(found, task, index))
    if follow and len(pods) > 1:
        raise Failure(f"{found['name']} has several pods; name one with --task and --index, or: hekla watch {job}")
    for pod in pods:
        if len(pods) > 1:
            click.secho(f"== {pod['task']}-{pod['index']}", bold=True)
        where = f"jobs/{found['uid']}/pods/{pod['task']}/{pod['index']}/log"
        _print(client, where, pod["attempt"] if attempt is None else attempt, follow)


def _print(client: Client, where: str, attempt: int, follow: bool) -> None:
    offset, last = 0, "\n"
    while True:
        piece = client.get(where, offset=offset, limit=_PIECE, attempt=attempt)
        click.echo("\n".join(output.plain(line) for line in piece["text"].split("\n")), nl=False)
        last = piece["text"][-1:] or last
        grew, offset = piece["next_offset"] > offset, piece["next_offset"]
        if piece["complete"] or not (grew or follow):
            break
        if not grew:
            time.sleep(_LOOK_EVERY_SECONDS)
    if last != "\n":
        click.echo()


def _none(found: dict[str, Any], task: str | None, index: int | None) -> str:
    if not found["pods"]:
        return f"{found['name']} has no pods yet. Why it waits: hekla job {found['name']}"
    names = ", ".join(f"{pod['task']}-{pod['index']}" for pod in found["pods"][:10])
    return f"{found['name']} has no pod {task or '*'}-{'*' if index is None else index}. It has: {names}."
