"""The root of every error that a person can be told about.

    HeklaError
    ├── Invalid        what was asked is not well formed; carries every problem with its path
    ├── Refused        well formed, but not possible now (queue closed, name taken)
    │   └── Forbidden  this person's role does not allow it
    └── NotFound       does not exist, or not for this person

Concrete errors live in the module that raises them and inherit from one of the three.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with what was sent: where (`tasks.0.replicas`) and what, in a sentence."""

    path: str
    message: str


class HeklaError(Exception):
    """Something a person can be told: a stable code and a sentence."""

    code = "error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Invalid(HeklaError):
    """What was sent is not well formed. Holds every problem at once."""

    code = "invalid"

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{p.path}: {p.message}" if p.path else p.message for p in problems))
        self.problems = tuple(problems)


class Refused(HeklaError):
    """Well formed, but cannot be done now. `path` names the field at fault where there is one."""

    code = "refused"

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class Forbidden(Refused):
    """The person may see the thing, but their role does not allow this."""

    code = "forbidden"


class NotFound(HeklaError):
    """There is no such thing, or not for this person: the two are not told apart."""

    code = "not_found"
