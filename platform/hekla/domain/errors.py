"""The root of all errors with a message for users.

    HeklaError
    ├── Invalid        the request is not well formed; carries every problem with its path
    ├── Refused        well formed, but not possible now (queue closed, name in use)
    │   └── Forbidden  the person's role does not allow it
    └── NotFound       does not exist, or is not visible to this person

Concrete errors live in the module that raises them and inherit from one of these.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a request: its path (`tasks.0.replicas`) and a sentence."""

    path: str
    message: str


class HeklaError(Exception):
    """An error with a message for users and a stable code."""

    code = "error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Invalid(HeklaError):
    """The request is not well formed. Holds all problems at once."""

    code = "invalid"

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{p.path}: {p.message}" if p.path else p.message for p in problems))
        self.problems = tuple(problems)


class Refused(HeklaError):
    """Well formed, but not possible now. `path`: the field that is the cause, if there is one."""

    code = "refused"

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class Forbidden(Refused):
    """The person can see the object, but their role does not allow this."""

    code = "forbidden"


class NotFound(HeklaError):
    """The object does not exist or is not visible to this person. The response is the same for both."""

    code = "not_found"
