"""What else a table may say of people, beside who they are and their role. The apps above this one add it.

An invitation carries it until somebody accepts.
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
    """Some columns that belong together. `heads` in words; `spellings`: as a table may call them."""

    heads: Mapping[str, Any]
    spellings: Mapping[str, set[str]]

    def read(self, cells: Mapping[str, str]) -> Values:
        """What the cells say, as JSON; nothing for empty ones. Raises Invalid, which names the columns."""

    def may(self, user: User, tenant: Tenant) -> bool:
        """Whether that person may give it there."""

    def differing(self, values: Values, tenant: Tenant, user: User) -> Values:
        """What of it this member does not have yet."""

    def give(self, values: Values, tenant: Tenant, user: User, *, actor: Actor, now: datetime) -> None:
        """Give it to the member, on behalf of somebody who may."""

    def words(self, values: Values) -> str:
        """It as a sentence; empty for nothing."""


KNOWN: list[Extra] = []


def heads() -> dict[str, Any]:
    """All columns, in words."""
    return {name: words for extra in KNOWN for name, words in extra.heads.items()}


def spellings() -> dict[str, set[str]]:
    """All columns, as a table may call them."""
    return {name: names for extra in KNOWN for name, names in extra.spellings.items()}


def may_all(values: Values, user: User, tenant: Tenant) -> bool:
    """Whether that person may give all of it."""
    return all(extra.may(user, tenant) for extra in KNOWN if extra.heads.keys() & values.keys())


def differing(values: Values, tenant: Tenant, user: User) -> dict[str, Any]:
    """What of it this member does not have yet."""
    return {name: value for extra in KNOWN for name, value in extra.differing(_of(extra, values), tenant, user).items()}


def give(values: Values, tenant: Tenant, user: User, *, actor: Actor, now: datetime) -> None:
    """Give all of it to the member."""
    for extra in KNOWN:
        if theirs := _of(extra, values):
            extra.give(theirs, tenant, user, actor=actor, now=now)


def words(values: Values) -> str:
    """All of it in sentences."""
    return together(extra.words(_of(extra, values)) for extra in KNOWN)


def _of(extra: Extra, values: Values) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in extra.heads}
