"""Saves what the console sends as a file."""

import os
from collections.abc import Iterable
from pathlib import Path

import click

from hekla.cli.failing import Failure
from hekla.client.errors import ClientError


def save(chunks: Iterable[bytes], file: Path) -> int:
    """Save the chunks, and return their size in bytes. A download that is cut leaves no file."""
    part = file.with_name(f".{file.name}.part")
    try:
        with part.open("wb") as whole:
            for chunk in chunks:
                whole.write(chunk)
            size = whole.tell()
        os.replace(part, file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise Failure(f"{file} cannot be written: {error.strerror}.") from error
    except (ClientError, KeyboardInterrupt):
        part.unlink(missing_ok=True)
        raise
    return size


def save_new(chunks: Iterable[bytes], file: Path) -> None:
    """Save the chunks as a new file, and say so. Raises Failure if the file exists."""
    if file.exists():
        raise Failure(f"{file} exists. Choose another name.")
    save(chunks, file)
    click.echo(f"Saved {file}.")
