"""For scripts and notebooks: `from hekla.client import Client`. It needs no other part of Hekla."""

from importlib import import_module
from typing import TYPE_CHECKING

from hekla.client.errors import (
    ClientError,
    Conflict,
    Fault,
    FieldError,
    Forbidden,
    Invalid,
    NoServer,
    NotFound,
    NotHekla,
    Refused,
    TooLate,
    TooMany,
    Unauthorized,
    Unreachable,
)
from hekla.client.servers import Server

if TYPE_CHECKING:
    from hekla.client.client import Client

__all__ = [
    "Client",
    "ClientError",
    "Conflict",
    "Fault",
    "FieldError",
    "Forbidden",
    "Invalid",
    "NoServer",
    "NotFound",
    "NotHekla",
    "Refused",
    "Server",
    "TooLate",
    "TooMany",
    "Unauthorized",
    "Unreachable",
]


def __getattr__(name: str) -> object:
    """The client itself is imported when it is wanted: the command `hekla` starts faster without httpx2."""
    if name == "Client":
        return import_module("hekla.client.client").Client
    raise AttributeError(name)
