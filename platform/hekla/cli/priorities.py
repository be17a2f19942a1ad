"""Priority classes: names for priorities."""

from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_classes(choice: ServerOptions, as_json: bool) -> None:
    """List the priority classes that your jobs may use, highest first."""
    found = client_of(choice).get("priority-classes")
    if as_json:
        output.as_json(found)
        return
    rows = [(one["name"], one["value"], _state(one), strip_control_codes(one["description"])[:80]) for one in found]
    output.table(("CLASS", "PRIORITY", "STATE", "DESCRIPTION"), rows, "No priority classes.")


def _state(one: dict[str, Any]) -> str:
    words = (
        ("offered" if one["is_offered"] else "hidden", True),
        ("default", one["is_default"]),
        ("never evicts other pods", one["never_preempts"]),
    )
    return ", ".join(word for word, holds in words if holds)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.option("--value", type=int, help="Priority. Higher priorities are scheduled first. Required for a new class.")
@click.option("--description", help="Purpose.")
@click.option("--default/--no-default", "is_default", default=None, help="Use the class for jobs that name none.")
@click.option(
    "--never-preempts/--may-preempt", "never_preempts", default=None, help="Whether its jobs may preempt other pods."
)
@click.option("--offered/--not-offered", "is_offered", default=None, help="Whether new jobs may use the class.")
@click.option("--tenant", "tenants", multiple=True, help="Allow this tenant (short name). May be repeated.")
@click.option("--everybody", is_flag=True, help="Allow all tenants.")
@click.pass_obj
def set_class(choice: ServerOptions, /, name: str, tenants: tuple[str, ...], everybody: bool, **fields: object) -> None:
    """Create or change the priority class NAME. Submitted jobs keep their priority."""
    if tenants and everybody:
        raise click.UsageError("Either --tenant or --everybody.")
    client = client_of(choice)
    body: dict[str, Any] = {field: value for field, value in fields.items() if value is not None}
    body |= {"tenants": list(tenants)} if tenants or everybody else {}
    is_there = any(one["name"] == name for one in client.get("priority-classes"))
    if is_there:
        found = client.patch(f"priority-classes/{name}", body)
    else:
        found = client.post("priority-classes", {"name": name, **body})
    whom = ", ".join(found["tenants"]) or "everybody"
    click.echo(f"{name} is {found['value']}, for {whom}: {_state(found)}.")


@click.command()
@click.argument("name")
@click.pass_obj
def delete(choice: ServerOptions, name: str) -> None:
    """Delete the priority class NAME. Its jobs keep their priority."""
    client_of(choice).delete(f"priority-classes/{name}")
    click.echo(f"{name} is deleted.")
