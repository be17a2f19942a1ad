"""The logs of pods."""

from collections.abc import Iterable

import click

from hekla.cli.client import Client, Failure, client_of
from hekla.cli.completion import JOB
from hekla.cli.servers import Choice
from hekla.client.documents import JobDetail
from hekla.lib.text import strip_control_codes


@click.command()
@click.argument("job", type=JOB)
@click.option("--task", help="Only this task. Required if the job has several.")
@click.option("--index", type=click.IntRange(0), help="Replica of the task, counted from 0.")
@click.option("--attempt", type=click.IntRange(0), help="Attempt. Default: the last.")
@click.option("--follow", "-f", is_flag=True, help="Follow the log until the pod ends.")
@click.option("--search", "-s", metavar="TEXT", help="Print only the lines with this text, with line numbers.")
@click.option("--ignore-case", "-i", is_flag=True, help="Ignore case in --search.")
@click.pass_obj
def logs(
    choice: Choice,
    job: str,
    task: str | None,
    index: int | None,
    attempt: int | None,
    follow: bool,
    search: str | None,
    ignore_case: bool,
) -> None:
    """Print the logs of the pods of JOB (a name or uid)."""
    if follow and search is not None:
        raise Failure("--search cannot be combined with --follow.")
    client = client_of(choice)
    found = client.job(job)
    pods = [pod for pod in found["pods"] if task in (None, pod["task"]) and index in (None, pod["index"])]
    if not pods:
        raise Failure(_none(found, task, index))
    if follow and len(pods) > 1:
        raise Failure(f"{found['name']} has several pods. Use --task and --index, or run: hekla job watch {job}")
    for pod in pods:
        if len(pods) > 1:
            click.secho(f"== {pod['task']}-{pod['index']}", bold=True)
        chosen = pod["attempt"] if attempt is None else attempt
        if search is None:
            _print(client.log_pieces(found, pod, attempt=chosen, follow=follow))
        else:
            where = f"jobs/{found['uid']}/pods/{pod['task']}/{pod['index']}/log"
            _search(client, where, chosen, search, ignore_case)


def _print(pieces: Iterable[str]) -> None:
    last = "\n"
    for piece in pieces:
        click.echo("\n".join(strip_control_codes(line) for line in piece.split("\n")), nl=False)
        last = piece[-1:]
    if last != "\n":
        click.echo()


def _search(client: Client, where: str, attempt: int, text: str, ignore_case: bool) -> None:
    position = {"offset": 0, "line": 1}
    while True:
        found = client.get(f"{where}/search", q=text, ignore_case=ignore_case, attempt=attempt, **position)
        for hit in found["hits"]:
            click.echo(f"{click.style(str(hit['line']), dim=True)}: {strip_control_codes(hit['text'])}")
        if found["complete"]:
            return
        position = {"offset": found["next_offset"], "line": found["next_line"]}


def _none(found: JobDetail, task: str | None, index: int | None) -> str:
    if not found["pods"]:
        return f"{found['name']} has no pods yet. Pending reason: hekla job show {found['name']}"
    names = ", ".join(f"{pod['task']}-{pod['index']}" for pod in found["pods"][:10])
    return f"{found['name']} has no pod {task or '*'}-{'*' if index is None else index}. It has: {names}."
