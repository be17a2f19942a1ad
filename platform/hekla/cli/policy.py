"""The scheduling policy of a cluster."""

from collections.abc import Callable
from typing import Any, BinaryIO

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import Choice
from hekla.lib.text import strip_control_codes


@click.command()
@click.argument("cluster")
@click.option("--try", "tried", type=click.File("rb"), help="Say what this policy would do; change nothing.")
@click.option("--set", "chosen", type=click.File("rb"), help="Put this policy in force.")
@click.option("--note", default="", help="Why, with --set.")
@click.option("--json", "as_json", is_flag=True, help="Print the console's answer.")
@click.pass_obj
def policy(
    choice: Choice, cluster: str, tried: BinaryIO | None, chosen: BinaryIO | None, note: str, as_json: bool
) -> None:
    """Print the scheduling policy of CLUSTER, try another one, or put it in force (operators and platform admins)."""
    if tried and chosen:
        raise click.UsageError("Either --try or --set.")
    client, path = client_of(choice), f"clusters/{cluster}/policy"
    if tried:
        _show(client.post(f"{path}/trial", {"text": _text(tried)}), as_json, _tell)
    elif chosen:
        _show(client.put(path, {"text": _text(chosen), "note": note}), as_json, _confirm)
    else:
        _show(client.get(path), as_json, _print)


def _text(file: BinaryIO) -> str:
    return file.read().decode(errors="replace")


def _show(answer: dict[str, Any], as_json: bool, show: Callable[[dict[str, Any]], None]) -> None:
    if as_json:
        output.as_json(answer)
    else:
        show(answer)


def _print(answer: dict[str, Any]) -> None:
    click.echo(strip_control_codes(answer["text"]), nl=not answer["text"].endswith("\n"))


def _confirm(answer: dict[str, Any]) -> None:
    click.echo(f"Version {answer['number']} is active from the next cycle on.")


def _tell(trial: dict[str, Any]) -> None:
    for fault in trial["faults"]:
        click.secho(
            f"{fault['name']} failed at {fault['point']}: {strip_control_codes(fault['error'])}", fg="red", err=True
        )
    rows = [
        (strip_control_codes(one["name"]), one["queue"], _fate(one["now"]), _fate(one["then"]))
        for one in trial["differences"]
    ]
    none = f"The next cycle would treat all {trial['jobs']} pending and running jobs the same."
    output.table(("JOB", "QUEUE", "ACTIVE", "PREVIEW"), rows, none)


def _fate(fate: dict[str, Any]) -> str:
    words = [
        "admitted" if fate["is_let_in"] else "",
        f"{fate['starts']} to start" if fate["starts"] else "",
        f"{fate['yields']} to yield" if fate["yields"] else "",
    ]
    return ", ".join(filter(None, words)) or "no change"
