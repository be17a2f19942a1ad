"""Further columns of an import table, besides the person and the role. Apps above this one add them to `KNOWN`.

An invitation stores their values as `grants` until it is accepted.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import Actor
from hekla.apps.sentences import together
from hekla.apps.tenancy.models import Tenant

Values = Mapping[str, Any]


class Extra(Protocol):
    """Columns that belong together. `heads`: label by column; `spellings`: accepted column names in a table."""

    heads: Mapping[str, Any]
    spellings: Mapping[str, set[str]]

    def read(self, cells: Mapping[str, str]) -> Values:
        """The values of the cells, as JSON; empty cells are left out. Raises Invalid with the columns as paths."""

    def may(self, user: User, tenant: Tenant) -> bool:
        """Whether the person may set these values in the tenant."""

    def differing(self, values: Values, tenant: Tenant, user: User) -> Values:
        """The values that the member does not have yet."""

    def give(self, values: Values, tenant: Tenant, user: User, *, actor: Actor, now: datetime) -> None:
        """Set the values for the member. The caller has checked the permissions."""

    def words(self, values: Values) -> str:
        """The values as a sentence; empty for no values."""


KNOWN: list[Extra] = []


def heads() -> dict[str, Any]:
    """The labels of all further columns, by column."""
    return {name: words for extra in KNOWN for name, words in extra.heads.items()}


def spellings() -> dict[str, set[str]]:
    """The accepted names of all further columns, by column."""
    return {name: names for extra in KNOWN for name, names in extra.spellings.items()}


def may_all(values: Values, user: User, tenant: Tenant) -> bool:
    """Whether the person may set all these values in the tenant."""
    return all(extra.may(user, tenant) for extra in KNOWN if extra.heads.keys() & values.keys())


def differing(values: Values, tenant: Tenant, user: User) -> dict[str, Any]:
    """The values that the member does not have yet."""
    return {name: value for extra in KNOWN for name, value in extra.differing(_of(extra, values), tenant, user).items()}


def give(values: Values, tenant: Tenant, user: User, *, actor: Actor, now: datetime) -> None:
    """Set all these values for the member."""
    for extra in KNOWN:
        if theirs := _of(extra, values):
            extra.give(theirs, tenant, user, actor=actor, now=now)


def words(values: Values) -> str:
    """All these values as sentences."""
    return together(extra.words(_of(extra, values)) for extra in KNOWN)


def _of(extra: Extra, values: Values) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in extra.heads}
