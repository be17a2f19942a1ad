"""Errors of the client.

ClientError
├── NotConfiguredError   no server or no token
├── UnreachableError     no response
│   └── ServerError      an internal error of the server
├── NotHeklaError        something else responds at this address
├── WaitTimeoutError     `wait` timed out
└── ResponseError        the server refused: BadRequest-, Authentication-, PermissionDenied-, NotFound-,
                         Conflict-, RateLimitError
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FieldError:
    """A problem with one field of the request; the path is empty for the request as a whole."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ClientError(Exception):
    """The base of all errors of the client."""


class NotConfiguredError(ClientError):
    """No server is configured, or no token for it."""


class UnreachableError(ClientError):
    """The server does not respond; a retry may help."""


class ServerError(UnreachableError):
    """The server failed with an internal error; a retry may not help."""


class NotHeklaError(ClientError):
    """The server at this address is not Hekla."""


class WaitTimeoutError(ClientError, TimeoutError):
    """The job did not reach the phase in time; it continues."""


class ResponseError(ClientError):
    """The server refused the request. `detail`: the reason; `code`: the same for programs; `errors`: by field."""

    def __init__(self, status: int, detail: str, code: str = "", errors: tuple[FieldError, ...] = ()) -> None:
        super().__init__(detail)
        self.status, self.detail, self.code, self.errors = status, detail, code, errors

    def __str__(self) -> str:
        others = [one for one in self.errors if not self.detail.endswith(one.message)]
        return "\n".join([self.detail, *(f"  {one}" for one in others)])


class BadRequestError(ResponseError):
    """The request is invalid (400); see `errors`."""


class AuthenticationError(ResponseError):
    """The token is unknown, expired or revoked (401)."""


class PermissionDeniedError(ResponseError):
    """The token does not permit this (403)."""


class NotFoundError(ResponseError):
    """The resource does not exist, or is not visible to you (404)."""


class ConflictError(ResponseError):
    """The present state does not allow this (409)."""


class RateLimitError(ResponseError):
    """Too many requests (429). `retry_after`: seconds to wait."""

    retry_after: float | None = None


_BY_STATUS: Mapping[int, type[ResponseError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    429: RateLimitError,
}


def error_from_response(status: int, document: Mapping[str, Any], retry_after: str = "") -> ResponseError:
    """The exception for problem details (RFC 9457)."""
    errors = tuple(FieldError(str(one["path"]), str(one["message"])) for one in document.get("errors", []))
    found = _BY_STATUS.get(status, ResponseError)(
        status, str(document["detail"]), str(document.get("code", "")), errors
    )
    if isinstance(found, RateLimitError) and retry_after.isdecimal():
        found.retry_after = float(retry_after)
    return found
