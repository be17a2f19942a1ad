"""Scaling of jobs."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.completion import JOB
from hekla.cli.servers import ServerOptions


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
@click.option(
    "--target",
    "targets",
    metavar="TASK=PERCENT",
    multiple=True,
    callback=_numbers,
    help="Target GPU utilization of a task.",
)
@click.option("--max", "most", metavar="TASK=NUMBER", multiple=True, callback=_numbers, help="Most pods of a task.")
@click.option("--no-autoscaling", "fixed", metavar="TASK", multiple=True, help="Switch off autoscaling of a task.")
@click.option("--json", "as_json", is_flag=True, help="Print the console's answer.")
@click.pass_obj
def scale(
    choice: ServerOptions,
    job: str,
    replicas: dict[str, int],
    least: dict[str, int],
    min_all: int | None,
    targets: dict[str, int],
    most: dict[str, int],
    fixed: tuple[str, ...],
    as_json: bool,
) -> None:
    """Scale tasks of JOB (a name or uid) up or down, for example: hekla job scale train worker=8

    A task without a minimum needs all its pods. To scale it below that number, set --min too. --target and --max change
    how a task scales itself by the utilization of its GPUs, for example: hekla job scale train --target worker=80
    """
    rules = _rules(targets, most, fixed)
    if not (replicas or least or rules) and min_all is None:
        raise click.UsageError("Enter the new size, for example worker=4.")
    answer = client_of(choice).scale(job, replicas, least=least, least_of_all=min_all, autoscaling=rules)
    for warning in answer["warnings"]:
        click.secho(f"Note: {warning}", fg="yellow", err=True)
    if as_json:
        output.as_json(answer)
        return
    click.echo(f"{answer['job']['name']} is to have: {', '.join(map(_size, answer['job']['spec']['tasks']))}.")


def _rules(
    targets: Mapping[str, int], most: Mapping[str, int], fixed: Sequence[str]
) -> dict[str, dict[str, int] | None]:
    """The changes of autoscaling by task; None: off."""
    rules: dict[str, dict[str, int] | None] = {
        task: {
            field: values[task]
            for field, values in (("gpu_utilization", targets), ("max_replicas", most))
            if task in values
        }
        for task in targets.keys() | most.keys()
    }
    if both := sorted(rules.keys() & set(fixed)):
        raise click.UsageError(f"--no-autoscaling {both[0]} excludes --target and --max of that task.")
    return rules | dict.fromkeys(fixed)


def _size(task: Mapping[str, Any]) -> str:
    rule = task.get("autoscaling")
    bounds = f" (at most {rule['max_replicas']}, GPU target {rule['gpu_utilization']}%)" if rule else ""
    return f"{task['name']} {task.get('replicas', 1)}{bounds}"
