"""Details of one pod."""

from collections.abc import Mapping
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import Failure, client_of
from hekla.cli.completion import JOB
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes

_MIB = 2**20


@click.command()
@click.argument("job", type=JOB)
@click.option("--task", help="Task of the pod. Required if the job has several.")
@click.option(
    "--index", type=click.IntRange(0), default=0, show_default=True, help="Replica of the task, counted from 0."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show(choice: ServerOptions, job: str, task: str | None, index: int, as_json: bool) -> None:
    """Show every attempt of a pod of JOB (a name or uid): times, node, exit code and advice."""
    client = client_of(choice)
    found = client.job(job)
    where = f"jobs/{found['uid']}/pods/{task or only_task(found)}/{index}"
    attempts = client.get(where)
    if as_json:
        output.as_json(attempts)
        return
    for attempt in attempts:
        _show(attempt, client.get(f"{where}/usage", attempt=attempt["attempt"]))


def only_task(found: Mapping[str, Any]) -> str:
    """The name of the job's task. Raises Failure if it has several."""
    tasks = sorted({task["name"] for task in found["spec"]["tasks"]})
    if len(tasks) > 1:
        raise Failure(f"{found['name']} has the tasks {', '.join(tasks)}. Name one with --task.")
    return str(tasks[0])


def _show(attempt: dict[str, Any], samples: list[dict[str, Any]]) -> None:
    head = click.style(f"{attempt['task']}-{attempt['index']}, attempt {attempt['attempt']}", bold=True)
    click.echo(f"{head}  {output.phase(attempt['phase'])}")
    for label, value in (*_facts(attempt), *_use(samples)):
        if value:
            click.echo(f"  {label:<9} {value}")


def _facts(attempt: dict[str, Any]) -> list[tuple[str, str]]:
    times = [("Created", "created_at"), ("Placed", "bound_at"), ("Started", "started_at"), ("Ended", "finished_at")]
    return [
        *((label, output.moment(attempt[name]) if attempt[name] else "") for label, name in times),
        ("Node", attempt["node"]),
        ("Cards", output.cards(attempt["cards"])),
        ("Own CPUs", attempt["cpus"]),
        ("Exit", attempt["exit_meaning"] if attempt["exit_code"] is not None else ""),
        ("Message", strip_control_codes(attempt["message"])),
        ("Cause", attempt["cause"]),
        ("Try", attempt["advice"]),
    ]


def _use(samples: list[dict[str, Any]]) -> list[tuple[str, str]]:
    if not samples:
        return []
    most = max(sample["memory_bytes"] for sample in samples)
    found = [("Used", f"{samples[-1]['cpu_seconds']:.1f} s of CPU, {most / _MIB:.0f} MiB of memory at most")]
    on_gpus = [sample["gpu_memory_bytes"] for sample in samples if sample["gpu_memory_bytes"] is not None]
    if on_gpus:
        busy = [sample["gpus_busy"] for sample in samples if sample["gpus_busy"] is not None]
        mean = f"{sum(busy) / len(busy):.2f} GPUs busy on average, " if busy else ""
        found.append(("", f"{mean}{max(on_gpus) / _MIB:.0f} MiB of GPU memory at most"))
    return found
