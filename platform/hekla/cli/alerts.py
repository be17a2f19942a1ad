"""Alerts and their rules."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import Client, Failure, client_of
from hekla.cli.manifest import bytes_of, unfit
from hekla.cli.servers import ServerOptions
from hekla.domain import yaml_text
from hekla.domain.errors import Invalid
from hekla.lib.text import strip_control_codes

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_TENANT = click.option("--tenant", help="The tenant (short name) that the rule is about. Default: the platform.")
_FILE = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))


@click.command()
@_JSON
@click.pass_obj
def list_alerts(choice: ServerOptions, as_json: bool) -> None:
    """List what fires now, what is near it, and what is without data."""
    found = client_of(choice).pages("alerts", 1000)
    if as_json:
        output.as_json(found)
        return
    rows = [
        (
            *(one["state"] + ", flapping" * one["is_flapping"], one["severity"], one["name"], one["rule"]),
            *(_number(one["value"]), output.moment(one["since"])),
        )
        for one in found
    ]
    output.table(("STATE", "SEVERITY", "ABOUT", "RULE", "VALUE", "SINCE"), rows, "Nothing fires.")


@click.command()
@_JSON
@click.pass_obj
def list_rules(choice: ServerOptions, as_json: bool) -> None:
    """List the alert rules that you can see."""
    found = client_of(choice).pages("alert-rules", 1000)
    if as_json:
        output.as_json(found)
        return
    rows = [
        (one["name"], one["tenant"] or "platform", one["severity"], _state(one), one["owner"], one["condition"])
        for one in found
    ]
    heads = ("NAME", "ABOUT", "SEVERITY", "STATE", "SAVED BY", "FIRES IF")
    output.table(heads, rows, "No alert rules. `hekla alert create FILE` creates one.")


@click.command()
@_JSON
@click.pass_obj
def list_measures(choice: ServerOptions, as_json: bool) -> None:
    """List what a rule can measure."""
    found = client_of(choice).get("alert-measures")
    if as_json:
        output.as_json(found)
        return
    rows = [
        (one["name"], one["subject"], one["unit"] or "–", "yes" if one["has_past"] else "no", one["meaning"])
        for one in found
    ]
    output.table(("MEASURE", "OF", "UNIT", "PAST", "MEANING"), rows, "No measures.")


@click.command()
@_FILE
@_TENANT
@click.pass_obj
def create(choice: ServerOptions, file: Path, tenant: str | None) -> None:
    """Create the rule in FILE, an AlertRuleSpec in YAML or JSON."""
    client = client_of(choice)
    _print_saved(client.post("alert-rules", _document(file), tenant=tenant))


@click.command()
@click.argument("name")
@_FILE
@click.pass_obj
def edit(choice: ServerOptions, name: str, file: Path) -> None:
    """Change rule NAME: FILE has the fields to change, in YAML or JSON. The rule acts with your rights from then on."""
    client = client_of(choice)
    _print_saved(client.patch(f"alert-rules/{_named(client, name)['uid']}", _document(file)))


@click.command()
@_FILE
@_TENANT
@_JSON
@click.pass_obj
def test(choice: ServerOptions, file: Path, tenant: str | None, as_json: bool) -> None:
    """Test the rule in FILE on the present values, and on the last 7 days. Saves nothing."""
    found = client_of(choice).post("alert-rules/preview", _document(file), tenant=tenant)
    if as_json:
        output.as_json(found)
        return
    rows = [(one["name"], _number(one["value"]), "fires" if one["is_breach"] else "") for one in found["values"]]
    output.table(("ABOUT", "VALUE", ""), rows, "No values.")
    click.echo(f"{found['breaches']} of {found['count']} values are beyond the threshold.")
    if found["no_data"]:
        click.echo(f"No data: {', '.join(found['no_data'])}.")
    past = found["past"]
    if not past["is_possible"]:
        click.echo("Past values of this measure are not recorded.")
        return
    click.echo(f"In the last 7 days it would have fired {past['count']} times.")
    for one in past["episodes"]:
        end = output.moment(one["until"]) if one["until"] else "now"
        click.echo(
            f"  {output.moment(one['begin'])} to {end}  {strip_control_codes(one['subject'])}  {_number(one['peak'])}"
        )


@click.command()
@click.argument("name")
@click.option("--hours", type=click.IntRange(1, 719), default=4, show_default=True, help="For so many hours.")
@click.option("--because", help="The reason, which people who see the rule can read.")
@click.option("--end", is_flag=True, help="End the silence.")
@click.pass_obj
def silence(choice: ServerOptions, name: str, hours: int, because: str | None, end: bool) -> None:
    """Silence rule NAME: it notifies nobody and does nothing. States are still recorded."""
    client = client_of(choice)
    place = f"alert-rules/{_named(client, name)['uid']}/silence"
    if end:
        client.delete(place)
        click.echo(f"{name} is not silenced.")
        return
    if not because:
        raise click.UsageError("Say why: --because REASON.")
    found = client.post(place, {"hours": hours, "reason": because})
    click.echo(f"{name} is silenced until {output.moment(found['silenced_until'])}.")


@click.command()
@click.argument("name")
@click.pass_obj
def veto(choice: ServerOptions, name: str) -> None:
    """Forbid all changes that rule NAME has announced and not made yet."""
    client = client_of(choice)
    found = client.get(f"alert-rules/{_named(client, name)['uid']}/history")["actions"]
    waiting = [one for one in found if one["is_vetoable"]]
    for one in waiting:
        client.post(f"alert-actions/{one['uid']}/veto", {})
        click.echo(f"Vetoed: {one['kind']} for {strip_control_codes(one['name'])}.")
    if not waiting:
        click.echo("No change waits.")


@click.command()
@click.argument("name")
@_JSON
@click.pass_obj
def history(choice: ServerOptions, name: str, as_json: bool) -> None:
    """Show the changes of states of rule NAME, and what it did."""
    client = client_of(choice)
    found = client.get(f"alert-rules/{_named(client, name)['uid']}/history")
    if as_json:
        output.as_json(found)
        return
    rows = [
        (output.moment(one["at"]), one["name"], f"{one['old']} to {one['new']}", _number(one["value"]), one["reason"])
        for one in found["changes"]
    ]
    output.table(("TIME", "ABOUT", "STATE", "VALUE", "REASON"), rows, "No state has changed yet.")
    click.echo()
    rows = [
        (output.moment(one["created_at"]), one["name"], f"{one['kind']} ({one['moment']})", _result(one), one["error"])
        for one in found["actions"]
    ]
    output.table(("TIME", "ABOUT", "ACTION", "RESULT", "ERROR"), rows, "The rule has done nothing yet.")


@click.command()
@click.argument("name")
@click.pass_obj
def delete(choice: ServerOptions, name: str) -> None:
    """Delete rule NAME and its history."""
    client = client_of(choice)
    client.delete(f"alert-rules/{_named(client, name)['uid']}")
    click.echo(f"{name} is deleted.")


def _document(file: Path) -> dict[str, Any]:
    try:
        documents = yaml_text.read(bytes_of(file))
    except Invalid as error:
        raise unfit(file, error, "is not YAML") from error
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise Failure(f"{file} must have one document with the fields of a rule.")
    return documents[0]


def _named(client: Client, name: str) -> dict[str, Any]:
    found = client.get("alert-rules", name=name, limit=2)["results"]
    if not found:
        raise Failure(f"Unknown alert rule “{name}”. `hekla alert rules` lists the rules that you can see.")
    if len(found) > 1:
        raise Failure(f"Several rules are named “{name}”, about the platform or tenants. Use the page Alerts.")
    document: dict[str, Any] = found[0]
    return document


def _print_saved(found: Mapping[str, Any]) -> None:
    rule = found["rule"]
    click.echo(f"{rule['name']} is saved: {rule['condition']}.")
    if found["webhook_secret"]:
        click.echo(f"Secret of the webhook, shown only now: {found['webhook_secret']}")


def _state(rule: Mapping[str, Any]) -> str:
    if not rule["is_enabled"]:
        return "off"
    if rule["fault"]:
        return "cannot be evaluated"
    return f"silenced until {output.moment(rule['silenced_until'])}" if rule["silenced_until"] else "on"


def _result(action: Mapping[str, Any]) -> str:
    if action["is_vetoable"]:
        return f"due {output.moment(action['due_at'])}"
    return "failed" if action["abandoned_at"] else action["result"] or "due"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
