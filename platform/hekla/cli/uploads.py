"""Uploads into the folders of pods. One that was interrupted goes on where it ended."""

import hashlib
import time
from collections.abc import Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

import click

from hekla.cli.client import Failure, client_of
from hekla.cli.completion import JOB
from hekla.cli.files import human_size, of_attempt, of_index, of_task, pod_path
from hekla.cli.servers import ServerOptions
from hekla.client.client import Client
from hekla.client.errors import ConflictError, UnreachableError

PIECE_BYTES = 8 * 2**20
_TRIES, _PAUSE_SECONDS = 8, 2.0


@click.command()
@click.argument("job", type=JOB)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("path", default="")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@of_task
@of_index
@of_attempt
@click.pass_obj
def put(
    choice: ServerOptions,
    job: str,
    file: Path,
    path: str,
    force: bool,
    task: str | None,
    index: int | None,
    attempt: int | None,
) -> None:
    """Upload FILE to PATH below the working folder of a pod of JOB (a name or uid).

    A PATH with / at its end is a folder. Run the same command again after an interruption: it continues.
    """
    client = client_of(choice)
    where = f"{pod_path(client.job(job), task, index)}/uploads"
    target = f"{path}{file.name}" if path.endswith("/") or not path else path
    size, wanted = file.stat().st_size, {"path": target.lstrip("/"), **({"replaces": "*"} if force else {})}
    found = [one for one in client.get(where, attempt=attempt)["uploads"] if _continues(one, wanted["path"], size)]
    upload = found[0] if found else client.begin_upload(where, size, wanted, attempt=attempt)
    digest = send_file(client, upload, file)
    click.echo(f"{wanted['path']}: {human_size(size)}, SHA-256 {digest}")


def send_file(client: Client, upload: Mapping[str, Any], file: Path) -> str:
    """Send the rest of the file, and return its SHA-256. Raises Failure if it changes meanwhile."""
    with file.open("rb") as content:
        theirs = _send(client, f"uploads/{upload['uid']}", upload["received_bytes"], content, upload["size_bytes"])
        content.seek(0)
        ours = hashlib.file_digest(content, "sha256").hexdigest()
    if ours != theirs:
        raise Failure(f"{file} has changed during the upload. Upload it again with --force.")
    return theirs


def _continues(upload: Mapping[str, Any], path: str, size: int) -> bool:
    return bool(upload["path"] == path and upload["size_bytes"] == size)


def _send(client: Client, address: str, offset: int, content: BufferedReader, size: int) -> str:
    """Send the bytes from `offset` on, and return the SHA-256 of the finished file.

    After a failure of the network it asks where to continue: an older request may also write some bytes late. If all
    bytes are there and the file has no name yet, an empty piece lets the server finish it.
    """
    failures = 0
    while not (offset == size and (digest := str(client.get(address)["sha256"]))):
        content.seek(offset)
        data = content.read(min(PIECE_BYTES, size - offset))
        if not data and offset < size:
            raise Failure("The file became shorter during the upload.")
        if failures >= _TRIES:
            raise Failure("The server has all bytes and does not finish the file. Run the same command again later.")
        try:
            client.write_piece(address, offset, data)
            offset, failures = offset + len(data), 0 if data else failures + 1
        except (UnreachableError, ConflictError) as error:
            failures += 1
            if failures == _TRIES or (isinstance(error, ConflictError) and error.code != "stale_upload"):
                raise
            time.sleep(_PAUSE_SECONDS)
            offset = client.get(address)["received_bytes"]
    return digest
