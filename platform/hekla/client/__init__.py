"""The client for scripts and notebooks: `from hekla.client import Client`. It imports no other part of Hekla."""

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
    """Import `Client` on first use: without httpx2, the command `hekla` starts faster."""
    if name == "Client":
        return import_module("hekla.client.client").Client
    raise AttributeError(name)
