"""The client of a command: for the console that its options mean."""

import click

from hekla.cli.failing import Failure
from hekla.cli.servers import Choice
from hekla.client import Client

__all__ = ["Client", "Failure", "client_of"]


def client_of(choice: Choice) -> Client:
    """The client for what the command's options say, closed when the command ends. Raises ClientError.

    It asks once: whoever sits before a terminal is told at once, and `hekla job watch` has a patience of its own.
    """
    server = choice.server()
    client = Client(server.url, server.token, retries=0)
    click.get_current_context().call_on_close(client.close)
    return client
