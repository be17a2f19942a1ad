"""Access tokens."""

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes

_SCOPES = ("read", "jobs", "manage", "admin")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_tokens(choice: ServerOptions, as_json: bool) -> None:
    """List your tokens, their scopes and their last use."""
    found = client_of(choice).get("tokens")
    if as_json:
        output.as_json(found)
        return
    rows = [
        (
            token["id"],
            strip_control_codes(token["name"]),
            f"{token['prefix']}…",
            ", ".join(token["scopes"]),
            output.moment(token["expires_at"]),
            output.moment(token["last_used_at"]),
        )
        for token in found
    ]
    output.table(("ID", "NAME", "PREFIX", "SCOPES", "EXPIRES", "LAST USED"), rows, "No tokens.")


@click.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(_SCOPES),
    help="Scope. May be repeated. Default: read and jobs.",
)
@click.option(
    "--days", type=click.IntRange(1, 366), default=90, show_default=True, help="Days until the token expires."
)
@click.pass_obj
def create(choice: ServerOptions, name: str, scopes: tuple[str, ...], days: int) -> None:
    """Create a token with this NAME. It is printed once, on a line of its own.

    read: read what you can see. jobs: submit and change jobs, flows, batches and schedules. manage: change tenants,
    their members and queues. admin: all your permissions, including creating tokens. Each scope includes read.
    """
    body = {"name": name, "days": days, **({"scopes": scopes} if scopes else {})}
    click.echo(client_of(choice).post("tokens", body)["token"])


@click.command()
@click.argument("number", type=int, metavar="ID")
@click.pass_obj
def revoke(choice: ServerOptions, number: int) -> None:
    """Revoke the token ID at once. `hekla token list` prints the IDs."""
    client_of(choice).delete(f"tokens/{number}")
    click.echo(f"Token {number} is revoked.")
