"""Saving a token, and showing its owner."""

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import Choice
from hekla.client.credentials import ServerCredentials, normalize_url, save_credentials


@click.command()
@click.argument("url")
@click.pass_obj
def login(choice: Choice, url: str) -> None:
    """Save the console URL and your token for later commands. Create a token on the page “Profile and tokens”."""
    token = choice.token or click.prompt("Token", hide_input=True)
    server = ServerCredentials(normalize_url(url), token.strip())
    me = client_of(Choice(server.url, server.token)).me()
    path = save_credentials(server)
    click.echo(f"Signed in to {server.url} as {me['username']}. Saved in {path}.")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def whoami(choice: Choice, as_json: bool) -> None:
    """Print the console address, your user name and your tenants."""
    client = client_of(choice)
    me = client.me()
    if as_json:
        output.as_json({"server": client.server.url, **me})
        return
    tenants = ", ".join(tenant["slug"] for tenant in me["tenants"]) or "no tenant"
    role = f", platform {me['platform_role']}" if me["platform_role"] else ""
    scopes = f"; this token may: {', '.join(me['scopes'])}" if me["scopes"] else ""
    click.echo(f"{me['username']} at {client.server.url}{role}; member of {tenants}{scopes}")
