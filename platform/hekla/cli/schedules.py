"""Schedules."""

from pathlib import Path
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import Client, Failure, client_of
from hekla.cli.manifest import bytes_of, unfit
from hekla.cli.servers import ServerOptions
from hekla.domain import formats, yaml_text
from hekla.domain.errors import Invalid
from hekla.domain.schedules import ScheduleSpec
from hekla.lib.text import strip_control_codes


@click.command()
@click.option("--tenant", help="Only schedules of this tenant (short name).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_schedules(choice: ServerOptions, tenant: str | None, as_json: bool) -> None:
    """List schedules."""
    found = client_of(choice).pages("schedules", 1000, tenant=tenant)
    if as_json:
        output.as_json(found)
        return
    rows = [(one["name"], one["tenant"], one["cron"], one["time_zone"], _next(one), one["owner"]) for one in found]
    heads = ("NAME", "TENANT", "CRON", "TIME ZONE", "NEXT RUN", "OWNER")
    output.table(heads, rows, "No schedules. `hekla schedule create FILE` creates one.")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--tenant", help="Your tenant (short name). Default: the first.")
@click.pass_obj
def create(choice: ServerOptions, file: Path, tenant: str | None) -> None:
    """Create the schedule in FILE: a Volcano CronJob or a ScheduleSpec, in YAML."""
    try:
        spec, warnings = _load(bytes_of(file))
    except Invalid as error:
        raise unfit(file, error, "is not a schedule that can be made") from error
    for warning in warnings:
        click.secho(f"Note: {warning}", fg="yellow", err=True)
    client = client_of(choice)
    made = client.post("schedules", spec.document(), tenant=tenant)["schedule"]
    click.echo(f"{made['name']} runs next at {_next(made)}: {client.server.url}/schedules/{made['uid']}/")


@click.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show(choice: ServerOptions, name: str, as_json: bool) -> None:
    """Show schedule NAME: its next run and the results of past runs."""
    client = client_of(choice)
    found = _named(client, name)
    if as_json:
        output.as_json(found)
        return
    click.echo(f"{found['name']}  {found['cron']}  {found['time_zone']}  of {found['owner']} in {found['tenant']}")
    click.echo("Suspended" if found["is_suspended"] else f"Next: {', '.join(map(output.moment, found['next_times']))}")
    click.echo()
    rows = [
        (
            output.moment(run["due_at"]),
            output.phase(run["phase"]) if run["phase"] else run["outcome"],
            run["job"] or "–",
            strip_control_codes(run["sentence"])[:120],
        )
        for run in found["runs"]
    ]
    output.table(("DUE", "RESULT", "JOB", "REASON"), rows, "No runs yet.")


@click.command()
@click.argument("name")
@click.pass_obj
def run(choice: ServerOptions, name: str) -> None:
    """Start a run of schedule NAME now."""
    found = _act(choice, name, "run")
    click.echo(f"Submitted {found['runs'][0]['job']}.")


@click.command()
@click.argument("name")
@click.pass_obj
def suspend(choice: ServerOptions, name: str) -> None:
    """Suspend schedule NAME."""
    click.echo(f"{_act(choice, name, 'suspend')['name']} is suspended.")


@click.command()
@click.argument("name")
@click.pass_obj
def resume(choice: ServerOptions, name: str) -> None:
    """Resume schedule NAME."""
    found = _act(choice, name, "resume")
    click.echo(f"{found['name']} runs next at {_next(found)}.")


@click.command()
@click.argument("name")
@click.pass_obj
def delete(choice: ServerOptions, name: str) -> None:
    """Delete schedule NAME. Its jobs stay."""
    client = client_of(choice)
    found = _named(client, name)
    client.delete(f"schedules/{found['uid']}")
    click.echo(f"{found['name']} is deleted.")


def _act(choice: ServerOptions, name: str, action: str) -> dict[str, Any]:
    client = client_of(choice)
    found: dict[str, Any] = client.post(f"schedules/{_named(client, name)['uid']}/actions", {"action": action})
    return found


def _named(client: Client, name: str) -> dict[str, Any]:
    found = client.get("schedules", name=name, limit=1)["results"]
    if not found:
        raise Failure(f"Unknown schedule “{name}”. `hekla schedule list` lists the schedules that you can see.")
    document: dict[str, Any] = client.get(f"schedules/{found[0]['uid']}")
    return document


def _load(text: bytes) -> tuple[ScheduleSpec, tuple[str, ...]]:
    documents = yaml_text.read(text)
    if len(documents) == 1 and isinstance(documents[0], dict) and "cron" in documents[0]:
        spec = ScheduleSpec.parse(documents[0])
        return spec, spec.job.remarks
    loaded = formats.load_schedule(text)
    return loaded.spec, loaded.warnings


def _next(found: dict[str, Any]) -> str:
    return "suspended" if found["is_suspended"] else output.moment(found["next_at"])
