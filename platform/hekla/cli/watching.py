"""Pending reasons, evictions and preemption risk of a job."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.completion import JOB
from hekla.cli.servers import Choice


def _about_job(address: str) -> Callable[[Callable[[Any], None]], click.Command]:
    """Make a command from a function that prints the document at `address` below a job."""

    def command_of(show: Callable[[Any], None]) -> click.Command:
        @wraps(show)
        def command(choice: Choice, job: str, as_json: bool) -> None:
            client = client_of(choice)
            found = client.get(f"jobs/{client.uid(job)}/{address}")
            if as_json:
                output.as_json(found)
            else:
                show(found)

        as_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
        return click.command()(click.argument("job", type=JOB)(as_option(click.pass_obj(command))))

    return command_of


@_about_job("waits")
def explain(found: Any) -> None:  # noqa: ANN401  (the console's answer)
    """Explain why JOB (a name or uid) was pending, period by period, and its present state."""
    rows = [
        (output.moment(cell["begin"]), output.seconds(cell["seconds"]), cell["kind"], cell["sentence"])
        for cell in found["cells"]
    ]
    output.table(("FROM", "DURATION", "REASON", "MESSAGE"), rows, "The job was never pending.")
    click.echo(f"\nNow: {found['sentence']}")


@_about_job("receipts")
def show_evictions(found: Any) -> None:  # noqa: ANN401  (the console's answer)
    """Show which pods were evicted for JOB (a name or uid), and for whom its own pods were evicted."""
    both = sorted([*found["yielded"], *found["gained"]], key=lambda receipt: -receipt["number"])
    for receipt in both:
        sentences = f"{receipt['sentence']} {receipt['rule']}. {receipt['share_change']}"
        click.echo(f"{output.moment(receipt['at'])}  {sentences}".rstrip())
    click.echo(found["standing"] or ("" if both else "No evictions: neither for this job nor of its pods."))


_SAFE = {
    "no_place": "The job has no allocated resources.",
    "no_reclaim": "The scheduling policy has no reclaim.",
    "no_shares": "The scheduling policy gives queues no shares.",
    "queue_keeps": "Its queue is not reclaimable.",
    "job_keeps": "Its pods are not preemptible.",
}


@_about_job("exposure")
def show_risk(found: Any) -> None:  # noqa: ANN401  (the console's answer)
    """Show how much of JOB (a name or uid) runs on borrowed resources, and which queues may reclaim them."""
    if found["is_safe"]:
        click.echo(_SAFE.get(found["is_safe"], found["is_safe"]))
        return
    click.echo(
        f"Borrowed: {found['now']} of {found['pods']} pods. If all other queues needed their shares: {found['most']}."
    )
    for one in found["claimants"]:
        share = f"{100 * one['share']:.0f} %"
        name = f"Queue {one['queue']}" if one["queue"] else "Another queue"
        click.echo(f"{name} has {share} of its deserved share and {one['pods']} pending pods.")
