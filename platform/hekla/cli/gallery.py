"""The gallery: job templates prepared by admins, and jobs from them."""

from collections.abc import Sequence
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import Client, Failure, client_of
from hekla.cli.servers import Choice
from hekla.lib.text import strip_control_codes


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_templates(choice: Choice, as_json: bool) -> None:
    """List the templates of the gallery."""
    found = client_of(choice).pages("gallery", 10_000)
    if as_json:
        output.as_json(found)
        return
    cards = [(strip_control_codes(each["title"]), each["tenant"] or "all", each["version"]) for each in found]
    output.table(("TITLE", "TENANT", "VERSION"), cards, "The gallery is empty.")


@click.command()
@click.argument("template")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show(choice: Choice, template: str, as_json: bool) -> None:
    """Show TEMPLATE (its title or uid) and the fields that you can set."""
    found = _card(client_of(choice), template)
    if as_json:
        output.as_json(found)
        return
    title, description = (strip_control_codes(found[name]) for name in ("title", "description"))
    click.echo(f"{title}, version {found['version']}\n{description}\n")
    rows = [(each["place"], _bounds(each)) for each in found["fields_open"]]
    output.table(("FIELD", "ALLOWED VALUES"), rows, "No fields can be set.")


@click.command()
@click.argument("template")
@click.option("--name", required=True, help="Name of the job.")
@click.option("--tenant", help="Your tenant (short name).")
@click.option("--set", "values", metavar="PLACE=VALUE", multiple=True, help="Value of a field.")
@click.pass_obj
def submit(choice: Choice, template: str, name: str, tenant: str | None, values: Sequence[str]) -> None:
    """Submit the job of TEMPLATE (its title or uid), with your values in its fields."""
    client = client_of(choice)
    pairs = [word.partition("=") for word in values]
    filled = {place: value for place, _equals, value in pairs}
    card = _card(client, template)
    body = {"name": name, "values": filled, "version": card["version"]}
    job = client.post(f"gallery/{card['uid']}/jobs", body, tenant=tenant)["job"]
    click.echo(
        f"Submitted {job['name']} to queue {job['queue']} of {job['tenant']}: {client.server.url}/jobs/{job['uid']}/"
    )


def _card(client: Client, template: str) -> Any:  # noqa: ANN401  (JSON-like data)
    found = [each for each in client.pages("gallery", 10_000) if template in (each["title"], each["uid"])]
    if len(found) != 1:
        how = "No template" if not found else "Several templates"
        raise Failure(f"{how} “{template[:80]}”. Use a uid from `hekla gallery list --json`.")
    return client.get(f"gallery/{found[0]['uid']}")


def _bounds(field: dict[str, Any]) -> str:
    least = f"from {field['least']}" if field["least"] else ""
    most = f"to {field['most']}" if field["most"] else ""
    return " ".join(filter(None, (least, most, " | ".join(field["choices"])))) or "–"
