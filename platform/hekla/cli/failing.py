"""Errors of commands: a message without a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from hekla.client.errors import AuthenticationError, ClientError, UnreachableError


class Failure(click.ClickException):
    """An error message and, if there are any, the wrong fields."""

    def __init__(self, message: str, errors: list[tuple[str, str]] | None = None) -> None:
        lines = [f"  {path}: {text}" if path else f"  {text}" for path, text in errors or []]
        super().__init__("\n".join([message, *lines]))


@contextmanager
def client_errors_as_failures() -> Iterator[None]:
    """Turn errors of the client into failures, with advice."""
    try:
        yield
    except ClientError as error:
        raise Failure(f"{error}{_advice(error)}") from error


def _advice(error: ClientError) -> str:
    if isinstance(error, AuthenticationError):
        return " Save a new token with: hekla login URL"
    return " To use another console, set --server." if isinstance(error, UnreachableError) else ""
