"""Invitations to a tenant."""

import click

from hekla.cli import output
from hekla.cli.client import Client, Failure, client_of
from hekla.cli.servers import Choice

_TENANT = click.option("--tenant", help="Your tenant (short name). Default: the first.")


@click.command()
@click.argument("email", default="")
@_TENANT
@click.option("--role", default="member", show_default=True, help="admin, member or viewer.")
@click.option("--platform-role", default="", help="Platform role (only platform admins can give one).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def create(choice: Choice, email: str, tenant: str | None, role: str, platform_role: str, as_json: bool) -> None:
    """Create an invitation and print its link. The console also mails it to EMAIL if mail is set up."""
    client = client_of(choice)
    body = {"email": email, "role": role, "platform_role": platform_role}
    made = client.post(_at(client, tenant), body)
    if as_json:
        output.as_json(made)
        return
    if email:
        on_its_way = f"A letter to {email} is on its way: hekla invitation list says if it cannot be mailed."
        click.secho(on_its_way if made["sent"] else "Not mailed: hand the link over yourself.", err=True)
    click.echo(made["link"])


@click.command()
@_TENANT
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_invitations(choice: Choice, tenant: str | None, as_json: bool) -> None:
    """List the open invitations to a tenant."""
    client = client_of(choice)
    found = client.get(_at(client, tenant))
    if as_json:
        output.as_json(found)
        return
    rows = [
        (
            one["id"],
            one["email"] or "–",
            one["role"],
            one["invited_by"],
            output.moment(one["expires_at"]),
            one["mail_error"] or "–",
        )
        for one in found
    ]
    heads = ("ID", "EMAIL", "ROLE", "INVITED BY", "EXPIRES", "MAIL ERROR")
    output.table(heads, rows, "No open invitations.")


@click.command()
@click.argument("number", type=int, metavar="ID")
@_TENANT
@click.pass_obj
def revoke(choice: Choice, number: int, tenant: str | None) -> None:
    """Revoke the invitation ID."""
    client = client_of(choice)
    client.delete(f"{_at(client, tenant)}/{number}")
    click.echo(f"Invitation {number} is revoked.")


def _at(client: Client, tenant: str | None) -> str:
    """The path of a tenant's invitations. Raises Failure."""
    if tenant is None:
        mine = client.me()["tenants"]
        if not mine:
            raise Failure("You are not a member of a tenant. Name one with --tenant.")
        tenant = mine[0]["slug"]
    return f"tenants/{tenant}/invitations"
