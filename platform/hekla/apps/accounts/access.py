"""Declarations of access: what a route or socket answers, by role and verb.

Each feature declares its own routes in its `access.py`, beside their URLs. `python3 manage.py access_matrix` prints
all of them. A test requests every URL in every role and compares the answer with the declaration; it fails for a URL
without one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

ROLES = {
    "anonymous": "not signed in",
    "stranger": "admin of another tenant",
    "viewer": "viewer of the tenant",
    "member": "member of the tenant",
    "tenant_admin": "admin of the tenant, and owner of the thing",
    "department_admin": "head of the department above the tenant",
    "manager": "manager of the platform, in no tenant",
    "operator": "operator of the platform, in no tenant",
    "platform_admin": "admin of the platform, in no tenant",
}
VERBS = ("get", "post", "put", "patch", "delete")
Verdicts = dict[str, str]


def who(**verdicts: str) -> Verdicts:
    """The verdict of every role: `ok`, `refused`, `absent`, `wrong` or `sign in`; `rest` is for roles not named."""
    rest = verdicts.pop("rest")
    return dict.fromkeys(ROLES, rest) | {"anonymous": "sign in"} | verdicts


ANYBODY = who(rest="ok", anonymous="ok")
SIGNED_IN = who(rest="ok")
TENANT = who(rest="ok", stranger="absent")
ACTS_ON_THE_JOB = who(rest="ok", stranger="absent", viewer="refused", member="refused", manager="refused")
REMINDS = TENANT | dict.fromkeys(("viewer", "tenant_admin"), "refused")  # not the owner
RETRIES = TENANT | dict.fromkeys(("viewer", "manager", "operator"), "refused")
STARTS_ITS_RUNS = ACTS_ON_THE_JOB | {"operator": "refused"}
MANAGES_MEMBERS = who(rest="refused", stranger="absent", tenant_admin="ok", department_admin="ok", platform_admin="ok")
DEPARTMENT = who(rest="absent", department_admin="ok", manager="ok", operator="ok", platform_admin="ok")
CHANGES_DEPARTMENTS = DEPARTMENT | {"department_admin": "refused", "manager": "refused", "operator": "refused"}
GIVES_ROLES = MANAGES_MEMBERS | {"stranger": "ok"}  # a stranger: in their own tenant
JOINS = who(rest="ok", viewer="refused", member="refused", tenant_admin="refused")  # refused: members already
# A tenant that is not the person's own is no choice of the form: wrong.
SHARES_VIEWS = MANAGES_MEMBERS | dict.fromkeys(("stranger", "manager", "operator", "platform_admin"), "wrong")
CHANGES_THE_QUEUE = who(rest="refused", stranger="absent", operator="ok", platform_admin="ok")
WRITES_A_DRAFT = who(rest="ok", viewer="refused", manager="absent", operator="absent", platform_admin="absent")
HAS_A_TENANT = who(rest="ok", manager="absent", operator="absent", platform_admin="absent")
AUDITS = GIVES_ROLES | {"operator": "ok"}
PUBLISHES = GIVES_ROLES  # a stranger: for their own tenant
SETS_TENANT_QUOTAS = who(rest="refused", stranger="absent", operator="ok", platform_admin="ok")
SETS_QUOTAS = MANAGES_MEMBERS | {"operator": "ok"}
OPERATORS = who(rest="refused", operator="ok", platform_admin="ok")
SEES_ALL = OPERATORS | {"manager": "ok"}
PLATFORM_ADMINS = who(rest="refused", platform_admin="ok")
SUBMITS = who(rest="ok", viewer="refused", manager="refused", operator="refused", platform_admin="refused")
SENDS = SUBMITS | {"manager": "wrong", "operator": "wrong", "platform_admin": "wrong"}  # wrong: they must name a tenant
ALREADY_IN = who(rest="ok", anonymous="no such method")  # redirected to the home page for any verb
OWN_TOKEN = who(rest="absent", tenant_admin="ok")
NOTHING = who(rest="absent")
NOBODY = who(rest="absent", anonymous="absent")
GUESSES = who(rest="wrong", anonymous="wrong")
ADDS_AS_ALICE = who(rest="refused", tenant_admin="409")  # a job of that name exists


class Impersonation(StrEnum):
    """What a route allows an admin who impersonates a person: nothing, reading, or every verb."""

    CLOSED = "closed"
    READ = "read"
    OPEN = "open"


READ, OPEN = Impersonation.READ, Impersonation.OPEN
_READS = frozenset({"get", "head"})


@dataclass(frozen=True)
class RouteAccess:
    """The verdicts of a route by verb; None for a verb that it does not support."""

    get: Verdicts | None = None
    post: Verdicts | None = None
    put: Verdicts | None = None
    patch: Verdicts | None = None
    delete: Verdicts | None = None
    impersonation: Impersonation = Impersonation.CLOSED

    def by_verb(self) -> Iterator[tuple[str, Verdicts]]:
        """The supported verbs with their verdicts."""
        return ((verb, verdicts) for verb in VERBS if (verdicts := getattr(self, verb)) is not None)

    def is_open_to_impersonation(self, verb: str) -> bool:
        """Whether an admin who impersonates a person may use this verb; the person's permissions apply too."""
        return self.impersonation is OPEN or (self.impersonation is READ and verb.lower() in _READS)
