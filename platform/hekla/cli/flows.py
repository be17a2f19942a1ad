"""Flows and their templates."""

import sys
import time
from typing import Any
from uuid import UUID

import click

from hekla.cli import manifest, output
from hekla.cli.client import Client, Failure, client_of
from hekla.cli.servers import Choice
from hekla.lib.text import strip_control_codes

LOOK_EVERY_SECONDS = 1.0


def submit_flow(
    client: Client, read: manifest.LoadedFlowManifest, *, tenant: str | None, dry_run: bool, watch: bool
) -> None:
    """Save the templates of a manifest and start its flow."""
    address = "flows" if read.starts else "templates"
    if dry_run and not read.starts:
        raise Failure("The templates are valid. A dry run needs a flow that uses them.")
    answer = client.post_yaml(address, read.text.encode(), tenant=tenant, dry_run="1" if dry_run else None)
    for warning in answer["warnings"]:
        click.secho(f"Note: {warning}", fg="yellow", err=True)
    if dry_run:
        click.echo(f"The console would start this flow of {len(answer['jobs'])} jobs.")
        return
    for template in answer.get("templates", []):
        click.echo(f"Saved {template['name']}: {client.server.url}/flows/templates/{template['uid']}/")
    if read.starts:
        flow = answer["flow"]
        click.echo(f"Started {flow['name']} of {flow['tenant']}: {client.server.url}/flows/{flow['uid']}/")
        if watch:
            sys.exit(_follow(client, flow))


@click.command()
@click.option("--phase", multiple=True, help="Filter by phase. May be repeated.")
@click.option("--tenant", help="Only flows of this tenant (short name).")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Maximum number of rows.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_flows(choice: Choice, phase: tuple[str, ...], tenant: str | None, limit: int, as_json: bool) -> None:
    """List flows, newest first."""
    found = client_of(choice).pages("flows", limit, phase=list(phase), tenant=tenant)
    if as_json:
        output.as_json(found)
        return
    rows = [
        (f["name"], output.phase(f["phase"]), f["tenant"], f["owner"], output.moment(f["started_at"])) for f in found
    ]
    heads = ("NAME", "PHASE", "TENANT", "OWNER", "STARTED")
    output.table(heads, rows, "No matching flows. `hekla job submit FILE` starts one from a JobFlow manifest.")


@click.command()
@click.argument("name", metavar="FLOW")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--manifest", "as_manifest", is_flag=True, help="Print it as Volcano's JobFlow.")
@click.pass_obj
def show(choice: Choice, name: str, as_json: bool, as_manifest: bool) -> None:
    """Show FLOW (a name or uid): its steps and their pending reasons."""
    found = _flow(client_of(choice), name)
    if as_manifest:
        click.echo(found["manifest"], nl=False)
    elif as_json:
        output.as_json(found)
    else:
        _show(found)


@click.command()
@click.argument("name", metavar="FLOW")
@click.pass_obj
def stop(choice: Choice, name: str) -> None:
    """Stop FLOW (a name or uid): no further step starts, and its jobs stop."""
    client = client_of(choice)
    found = client.post(f"flows/{_flow(client, name)['uid']}/stop", {})
    click.echo(f"{found['name']} is {output.phase(found['phase'])}.")


@click.command()
@click.option("--tenant", help="Only templates of this tenant (short name).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_templates(choice: Choice, tenant: str | None, as_json: bool) -> None:
    """List the job templates for flows."""
    found = client_of(choice).pages("templates", 10_000, tenant=tenant)
    if as_json:
        output.as_json(found)
        return
    rows = [(each["name"], each["tenant"], each["owner"], output.moment(each["changed_at"])) for each in found]
    output.table(
        ("NAME", "TENANT", "OWNER", "CHANGED"), rows, "No templates. `hekla job submit FILE` saves a JobTemplate."
    )


def _show(found: dict[str, Any]) -> None:
    click.echo(f"{'Flow':<10} {found['name']}  ({found['uid']})")
    click.echo(f"{'Phase':<10} {output.phase(found['phase'])}")
    click.echo(f"{'Tenant':<10} {found['tenant']}, started by {found['owner']}")
    click.echo(f"{'Started':<10} {output.moment(found['started_at'])}")
    click.echo(f"{'Ended':<10} {output.moment(found['ended_at'])}\n")
    rows = [
        (
            step["name"],
            output.phase(step["phase"]),
            ", ".join(step["waits_for"]) or "–",
            strip_control_codes(" ".join(step["reasons"]))[:100],
        )
        for step in found["steps"]
    ]
    output.table(("STEP", "PHASE", "DEPENDS ON", "PENDING REASON"), rows, "")


def _flow(client: Client, name: str) -> dict[str, Any]:
    """The flow of that uid, or the newest of that name. Raises Failure."""
    try:
        uid = UUID(name)
    except ValueError:
        found = client.get("flows", name=name, limit=1)["results"]
        if not found:
            raise Failure(f"Unknown flow “{name}”. `hekla flow list` lists the flows that you can see.") from None
        uid = found[0]["uid"]
    document: dict[str, Any] = client.get(f"flows/{uid}")
    return document


def _follow(client: Client, flow: dict[str, Any]) -> int:
    """Print every change of a step until the flow has ended. Returns 0 if it succeeded, else 1."""
    known: dict[str, str] = {}
    while True:
        for step in flow["steps"]:
            if known.get(step["name"]) != step["phase"]:
                known[step["name"]] = step["phase"]
                click.echo(f"{step['name']}: {output.phase(step['phase'])}")
        if flow["is_over"]:
            click.echo(f"{flow['name']} has {output.phase(flow['phase'])}.")
            return 0 if flow["phase"] == "succeeded" else 1
        time.sleep(LOOK_EVERY_SECONDS)
        flow = client.get(f"flows/{flow['uid']}")
