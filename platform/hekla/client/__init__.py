"""For scripts and notebooks: `from hekla.client import Client`. It needs no other part of Hekla."""

from importlib import import_module
from typing import TYPE_CHECKING

from hekla.client.credentials import ServerCredentials
from hekla.client.errors import (
    AuthenticationError,
    BadRequestError,
    ClientError,
    ConflictError,
    FieldError,
    NotConfiguredError,
    NotFoundError,
    NotHeklaError,
    PermissionDeniedError,
    RateLimitError,
    ResponseError,
    ServerError,
    UnreachableError,
    WaitTimeoutError,
)

if TYPE_CHECKING:
    from hekla.client.client import Client

__all__ = [
    "AuthenticationError",
    "BadRequestError",
    "Client",
    "ClientError",
    "ConflictError",
    "FieldError",
    "NotConfiguredError",
    "NotFoundError",
    "NotHeklaError",
    "PermissionDeniedError",
    "RateLimitError",
    "ResponseError",
    "ServerCredentials",
    "ServerError",
    "UnreachableError",
    "WaitTimeoutError",
]


def __getattr__(name: str) -> object:
    """The client itself is imported when it is wanted: the command `hekla` starts faster without httpx2."""
    if name == "Client":
        return import_module("hekla.client.client").Client
    raise AttributeError(name)
