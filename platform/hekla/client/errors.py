"""Why there is no answer, or why it is a no."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one place of what was sent; the path is empty where it is the whole."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ClientError(Exception):
    """All that the client raises."""


class NotConfiguredError(ClientError):
    """There is no console to speak to, or no token for it."""


class UnreachableError(ClientError):
    """Nobody answers; later somebody may."""


class ServerError(UnreachableError):
    """The console could not answer, through no fault of the request. To ask again may not help."""


class NotHeklaError(ClientError):
    """What answers there is no console."""


class WaitTimeoutError(ClientError, TimeoutError):
    """What was waited for did not come in time; the job goes on."""


class ResponseError(ClientError):
    """The console says no. `detail`: why, as a sentence; `code`: the same for programs; `errors`: field by field."""

    def __init__(self, status: int, detail: str, code: str = "", errors: tuple[FieldError, ...] = ()) -> None:
        super().__init__(detail)
        self.status, self.detail, self.code, self.errors = status, detail, code, errors

    def __str__(self) -> str:
        others = [one for one in self.errors if not self.detail.endswith(one.message)]
        return "\n".join([self.detail, *(f"  {one}" for one in others)])


class BadRequestError(ResponseError):
    """What was sent is not right; `errors` says where."""


class AuthenticationError(ResponseError):
    """The token is unknown, expired or revoked."""


class PermissionDeniedError(ResponseError):
    """One may see it and not do this to it."""


class NotFoundError(ResponseError):
    """It does not exist, or not for you."""


class ConflictError(ResponseError):
    """As things are now it cannot be done."""


class RateLimitError(ResponseError):
    """So many requests a minute are not answered. `retry_after`: seconds until they are again."""

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
