"""A text file of a pod in the person's own editor. What the program changed meanwhile is never replaced."""

import hashlib
import tempfile
from pathlib import Path

import click

from hekla.cli.client import Client, Failure, client_of
from hekla.cli.completion import JOB
from hekla.cli.files import of_attempt, of_index, of_task, pod_path
from hekla.cli.servers import ServerOptions
from hekla.cli.uploads import send_file
from hekla.client.errors import ClientError, ConflictError, NotFoundError
from hekla.domain import text_files


@click.command()
@click.argument("job", type=JOB)
@click.argument("path")
@click.option("--new", "is_new", is_flag=True, help="Begin a new file. Without it, the file must exist.")
@of_task
@of_index
@of_attempt
@click.pass_obj
def edit(
    choice: ServerOptions,
    job: str,
    path: str,
    is_new: bool,
    task: str | None,
    index: int | None,
    attempt: int | None,
) -> None:
    """Edit the text file PATH of a pod of JOB (a name or uid) in $VISUAL or $EDITOR, and save it there.

    If the file changed meanwhile, nothing is replaced, and your version stays on this machine.
    """
    client, wanted = client_of(choice), path.strip("/")
    where = pod_path(client.job(job), task, index)
    before = _read(client, where, wanted, attempt, is_new=is_new)
    name = wanted.rpartition("/")[2]
    file = Path(tempfile.mkdtemp(prefix="hekla-")) / (name if name.strip(".") else "file")
    file.write_bytes(before)
    try:
        click.edit(filename=str(file))
    except click.ClickException as error:
        raise Failure(f"{error.message} Your version: {file}") from error
    after = file.read_bytes()
    if after == before:
        _delete(file)
        click.echo("Not changed.")
        return
    if text_files.read_text(after) is None or len(after) > text_files.MOST_BYTES:
        raise Failure(f"Not saved: it is no UTF-8 text of at most 1 MiB. Your version: {file}")
    try:
        replaces = {} if is_new else {"replaces": hashlib.sha256(before).hexdigest()}
        upload = client.begin_upload(f"{where}/uploads", len(after), {"path": wanted, **replaces}, attempt=attempt)
        digest = send_file(client, upload, file)
    except ConflictError as error:
        if error.code != "file_exists":
            raise Failure(f"{error} Your version: {file}") from error
        raise Failure(
            f"{wanted} was changed or created meanwhile. Nothing was replaced. Your version: {file}\n"
            f"Save it under another name: hekla file put {job} {file} NAME"
        ) from error
    except ClientError as error:
        raise Failure(f"{error} Your version: {file}") from error
    _delete(file)
    click.echo(f"{wanted}: saved, SHA-256 {digest}")


def _read(client: Client, where: str, path: str, attempt: int | None, *, is_new: bool) -> bytes:
    """The content of the file; empty for a new one. Raises Failure if it cannot be edited."""
    of_pod = {} if attempt is None else {"attempt": attempt}
    content = b""
    try:
        for chunk in client.read_bytes(f"{where}/file", path=path, **of_pod):
            content += chunk
            if len(content) > text_files.MOST_BYTES:
                raise Failure(f"{path} is larger than 1 MiB. Download it: hekla job download")
    except NotFoundError:
        if is_new:
            return b""
        raise
    if is_new:
        raise Failure(f"{path} exists. Edit it without --new.")
    if text_files.read_text(content) is None:
        raise Failure(f"{path} is no UTF-8 text. Download it: hekla job download")
    return content


def _delete(file: Path) -> None:
    file.unlink()
    file.parent.rmdir()
