"""Scopes of API tokens. A token never allows more than the permissions of its owner, and mostly less.

Every scope includes reading, because people cannot work with what they cannot see.
"""

from collections.abc import Collection
from enum import StrEnum

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.domain.errors import Forbidden


class Scope(StrEnum):
    """What an API route requires of a token."""

    READ = "read"
    JOBS = "jobs"
    MANAGE = "manage"
    ADMIN = "admin"


USUAL = (Scope.READ, Scope.JOBS)
SESSION = "session"
"""What the tokens of sessions with pods hold instead of scopes. Only a few routes, by name, accept them."""
SCOPE_LABELS = {
    Scope.READ: gettext_lazy("Read everything that you can see"),
    Scope.JOBS: gettext_lazy("Submit and manage jobs, flows, batches and schedules"),
    Scope.MANAGE: gettext_lazy("Manage tenants, members and queues"),
    Scope.ADMIN: gettext_lazy("All of your permissions, including creating tokens"),
}


class MissingScope(Forbidden):
    """The token lacks the scope; its owner may still have the permission."""

    code = "missing_scope"

    def __init__(self, scope: Scope) -> None:
        super().__init__(
            _("This token lacks the scope “%(scope)s”. Create a token with it on the page “Profile and tokens”.")
            % {"scope": scope.value}
        )
        self.scope = scope


def allows(held: Collection[str], needed: Scope) -> bool:
    """Whether a token with the scopes `held` may be used where `needed` is required."""
    return needed in held or Scope.ADMIN in held or (needed is Scope.READ and any(scope != SESSION for scope in held))


def label(scope: str) -> str:
    """The label of a scope; its name if this version does not know it."""
    if scope == SESSION:
        return _("Submit, read and change your jobs in one tenant, until the session ends")
    return str(SCOPE_LABELS[Scope(scope)]) if scope in set(Scope) else scope
