"""The client of a command, for the server that its options select."""

import click

from hekla.cli.failing import Failure
from hekla.cli.servers import ServerOptions
from hekla.client import Client
from hekla.client.transport import LIMIT_SECONDS

__all__ = ["Client", "Failure", "client_of"]


def client_of(choice: ServerOptions, *, limit_seconds: float = LIMIT_SECONDS) -> Client:
    """The client for the command's options, closed when the command ends. Raises ClientError.

    It retries only after the console refused too many requests: a person at a terminal gets other errors at once, and
    `hekla job watch` retries by itself.
    """
    server = choice.server()
    client = Client(server.url, server.token, retries=0, limit_seconds=limit_seconds, on_limit=_say_limit)
    click.get_current_context().call_on_close(client.close)
    return client


def _say_limit(seconds: float) -> None:
    click.secho(f"The console refuses more requests for now; continuing in {seconds:g} s …", fg="yellow", err=True)
