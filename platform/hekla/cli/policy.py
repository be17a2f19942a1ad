"""The scheduling policy of a cluster."""

from collections.abc import Callable
from typing import Any, BinaryIO

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes

_JSON = click.option("--json", "as_json", is_flag=True, help="Print the console's answer.")


@click.command()
@click.argument("cluster")
@_JSON
@click.pass_obj
def show(choice: ServerOptions, cluster: str, as_json: bool) -> None:
    """Print the active scheduling policy of CLUSTER."""
    _show(client_of(choice).get(f"clusters/{cluster}/policy"), as_json, _print_policy)


@click.command()
@click.argument("cluster")
@click.argument("file", type=click.File("rb"))
@_JSON
@click.pass_obj
def preview(choice: ServerOptions, cluster: str, file: BinaryIO, as_json: bool) -> None:
    """Preview what the policy in FILE would change in CLUSTER (operators and platform admins)."""
    _show(client_of(choice).post(f"clusters/{cluster}/policy/trial", {"text": _text(file)}), as_json, _print_trial)


@click.command()
@click.argument("cluster")
@click.argument("file", type=click.File("rb"))
@click.option("--note", default="", help="The reason for the change.")
@_JSON
@click.pass_obj
def set_policy(choice: ServerOptions, cluster: str, file: BinaryIO, note: str, as_json: bool) -> None:
    """Activate the policy in FILE for CLUSTER (operators and platform admins)."""
    body = {"text": _text(file), "note": note}
    _show(client_of(choice).put(f"clusters/{cluster}/policy", body), as_json, _confirm)


def _text(file: BinaryIO) -> str:
    return file.read().decode(errors="replace")


def _show(answer: dict[str, Any], as_json: bool, show: Callable[[dict[str, Any]], None]) -> None:
    if as_json:
        output.as_json(answer)
    else:
        show(answer)


def _warn(answer: dict[str, Any]) -> None:
    """Print the inputs that plugins of the policy lack."""
    for warning in answer.get("warnings", ()):
        text = strip_control_codes(f"{warning['path']}: {warning['message']}")
        click.secho(f"Warning: {text}", fg="yellow", err=True)


def _print_policy(answer: dict[str, Any]) -> None:
    _warn(answer)
    click.echo(strip_control_codes(answer["text"]), nl=not answer["text"].endswith("\n"))


def _confirm(answer: dict[str, Any]) -> None:
    _warn(answer)
    click.echo(f"Version {answer['number']} is active from the next cycle on.")


def _print_trial(trial: dict[str, Any]) -> None:
    _warn(trial)
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
