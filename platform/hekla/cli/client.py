"""The client of a command, for the server that its options select."""

import click

from hekla.cli.failing import Failure
from hekla.cli.servers import Choice
from hekla.client import Client

__all__ = ["Client", "Failure", "client_of"]


def client_of(choice: Choice) -> Client:
    """The client for the command's options, closed when the command ends. Raises ClientError.

    It does not retry: a person at a terminal gets errors at once, and `hekla job watch` retries by itself.
    """
    server = choice.server()
    client = Client(server.url, server.token, retries=0)
    click.get_current_context().call_on_close(client.close)
    return client
