"""The other end of `ssh`: its input and output on a websocket of the console."""

import json
import os
import ssl
import sys
from contextlib import suppress
from threading import Thread
from typing import Any
from urllib.parse import quote, urlsplit

import click
import httpx2
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from hekla.cli import ssh_files
from hekla.cli.failing import Failure
from hekla.cli.servers import ServerOptions
from hekla.client.credentials import ServerCredentials
from hekla.client.transport import LOOPBACK

_OPEN_SECONDS = 20.0
_PING_SECONDS, _PONG_SECONDS = 15.0, 30.0
"""The connection counts as lost when two signs of life are missing."""
_CHUNK_BYTES = 64 * 1024
_NOT_SIGNED_IN, _TOO_MANY = 4401, 4429
_WORDS = {
    _NOT_SIGNED_IN: "Unknown, expired or revoked token. Create a new one, then run: hekla login URL",
    _TOO_MANY: "You have too many open connections to the console. Close some first.",
}


@click.command()
@click.argument("host")
@click.pass_obj
def ssh_proxy(choice: ServerOptions, host: str) -> None:
    """Connect standard input and output to the SSH of a pod; `ssh` runs this. HOST: JOB or JOB.TASK-INDEX."""
    server = choice.server()
    with _connected(server, host) as connection:
        try:
            _greet(connection, server.url)
            Thread(target=_send_input, args=(connection,), daemon=True).start()
            for message in connection:
                _show(message)
        except BrokenPipeError:  # `ssh` has ended
            return
        except (ConnectionClosed, TimeoutError, OSError) as error:
            raise Failure(_reason(error)) from error


def _connected(server: ServerCredentials, host: str) -> ClientConnection:
    """The websocket. Raises Failure."""
    parts = urlsplit(server.url)
    is_secure = parts.scheme == "https"
    options: dict[str, Any] = {"proxy": None} if parts.hostname in LOOPBACK else {}
    if is_secure:
        options["ssl"] = _certificates()
    address = f"{'wss' if is_secure else 'ws'}://{parts.netloc}{parts.path}/ws/ssh/{quote(host, safe='')}/"
    try:
        connection: ClientConnection = connect(
            address,
            additional_headers={"Authorization": f"Bearer {server.token}"},
            open_timeout=_OPEN_SECONDS,
            ping_interval=_PING_SECONDS,
            ping_timeout=_PONG_SECONDS,
            compression=None,
            **options,
        )
    except InvalidStatus as error:
        raise Failure(f"The console at {server.url} refuses SSH (status {error.response.status_code}).") from error
    except (OSError, TimeoutError, InvalidHandshake, ValueError) as error:
        raise Failure(f"Cannot connect to {server.url}: {error}.") from error
    return connection


def _certificates() -> ssl.SSLContext:
    """Those that the other commands use."""
    return httpx2.create_ssl_context()


def _greet(connection: ClientConnection, url: str) -> None:
    """Note the host key of the console, before `ssh` reads it. Raises Failure if the console refuses."""
    greeting = connection.recv(timeout=_OPEN_SECONDS)
    if not isinstance(greeting, str):
        raise Failure("What answers there is not a console that knows SSH.")
    facts = json.loads(greeting)
    if facts["type"] != "ready":
        raise Failure(str(facts["text"]))
    ssh_files.write_known_host(url, str(facts["host_key"]))


def _show(message: str | bytes) -> None:
    """Pass on bytes to `ssh`. A text is what the console says at the end."""
    if isinstance(message, str):
        with suppress(ValueError, LookupError):
            click.echo(f"hekla: {json.loads(message)['text']}", err=True)
        return
    rest = memoryview(message)
    while rest:
        rest = rest[os.write(sys.stdout.fileno(), rest) :]


def _send_input(connection: ClientConnection) -> None:
    """Send what `ssh` writes, until its end."""
    with suppress(ConnectionClosed, OSError):
        while data := os.read(sys.stdin.fileno(), _CHUNK_BYTES):
            connection.send(data)
    connection.close()


def _reason(error: Exception) -> str:
    code = error.rcvd.code if isinstance(error, ConnectionClosed) and error.rcvd else None
    return _WORDS.get(code or 0, "The connection to the console was lost.")
