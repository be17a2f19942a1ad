"""Scaling of jobs."""

from collections.abc import Sequence

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.completion import JOB
from hekla.cli.servers import Choice


def _numbers(_ctx: click.Context, _option: click.Parameter, words: Sequence[str]) -> dict[str, int]:
    """The number of each task from `worker=4`."""
    found = {}
    for word in words:
        task, _, number = word.partition("=")
        if not task or not number.isascii() or not number.isdigit():
            raise click.BadParameter(f"“{word}” is not TASK=NUMBER, for example worker=4.")
        found[task] = int(number[:9])
    return found


@click.command()
@click.argument("job", type=JOB)
@click.argument("replicas", metavar="[TASK=REPLICAS]...", nargs=-1, callback=_numbers)
@click.option("--min", "least", metavar="TASK=NUMBER", multiple=True, callback=_numbers, help="Minimum pods of a task.")
@click.option("--min-all", type=click.IntRange(1), help="Minimum pods of all tasks together.")
@click.option("--json", "as_json", is_flag=True, help="Print the console's answer.")
@click.pass_obj
def scale(
    choice: Choice, job: str, replicas: dict[str, int], least: dict[str, int], min_all: int | None, as_json: bool
) -> None:
    """Scale tasks of JOB (a name or uid) up or down, for example: hekla job scale train worker=8

    A task without a minimum needs all its pods. To scale it below that number, set --min too.
    """
    if not replicas and not least and min_all is None:
        raise click.UsageError("Enter the new size, for example worker=4.")
    answer = client_of(choice).scale(job, replicas, least=least, least_of_all=min_all)
    for warning in answer["warnings"]:
        click.secho(f"Note: {warning}", fg="yellow", err=True)
    if as_json:
        output.as_json(answer)
        return
    sizes = ", ".join(f"{task['name']} {task.get('replicas', 1)}" for task in answer["job"]["spec"]["tasks"])
    click.echo(f"{answer['job']['name']} is to have: {sizes}.")
