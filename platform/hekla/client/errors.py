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


class NoServer(ClientError):
    """There is no console to speak to, or no token for it."""


class Unreachable(ClientError):
    """Nobody answers; later somebody may."""


class Fault(Unreachable):
    """The console could not answer, through no fault of the request. To ask again may not help."""


class NotHekla(ClientError):
    """What answers there is no console."""


class TooLate(ClientError, TimeoutError):
    """What was waited for did not come in time; the job goes on."""


class Refused(ClientError):
    """The console says no. `detail`: why, as a sentence; `code`: the same for programs; `errors`: field by field."""

    def __init__(self, status: int, detail: str, code: str = "", errors: tuple[FieldError, ...] = ()) -> None:
        super().__init__(detail)
        self.status, self.detail, self.code, self.errors = status, detail, code, errors

    def __str__(self) -> str:
        told = [one for one in self.errors if not self.detail.endswith(one.message)]
        return "\n".join([self.detail, *(f"  {one}" for one in told)])


class Invalid(Refused):
    """What was sent is not right; `errors` says where."""


class Unauthorized(Refused):
    """The token is unknown, expired or revoked."""


class Forbidden(Refused):
    """One may see it and not do this to it."""


class NotFound(Refused):
    """It does not exist, or not for you."""


class Conflict(Refused):
    """As things are now it cannot be done."""


class TooMany(Refused):
    """So many requests a minute are not answered. `retry_after`: seconds until they are again."""

    retry_after: float | None = None


_BY_STATUS: Mapping[int, type[Refused]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: TooMany,
}


def refusal(status: int, document: Mapping[str, Any], retry_after: str = "") -> Refused:
    """The exception for problem details (RFC 9457)."""
    errors = tuple(FieldError(str(one["path"]), str(one["message"])) for one in document.get("errors", []))
    found = _BY_STATUS.get(status, Refused)(status, str(document["detail"]), str(document.get("code", "")), errors)
    if isinstance(found, TooMany) and retry_after.isdecimal():
        found.retry_after = float(retry_after)
    return found
