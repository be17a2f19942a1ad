"""Tenants and departments: their limits, what they keep, and who belongs to them."""

from typing import Annotated

from pydantic import Field

from hekla.domain.events.base import Changes, Event, Name, Vocabulary


class TenantCreated(Event):
    name: Name


class TenantChanged(Event):
    name: Name
    changes: Changes


class DepartmentCreated(Event):
    name: Name


class DepartmentChanged(Event):
    """Its fields, and as lists of names its heads and its tenants."""

    name: Name
    changes: Changes


class QuotaSet(Event):
    """`of`: the tenant, each of its members, or one of them, who then has a name."""

    of: Name
    username: str = Field(default="", max_length=150)
    changes: Changes


class LogsPurged(Event):
    """The logs of so many deleted jobs were removed: the tenant keeps none for longer."""

    jobs: int


class HistoryPurged(Event):
    """So many deleted jobs were removed with all that the log told of them: the tenant keeps none for longer."""

    jobs: int
    events: int


class MemberAdded(Event):
    username: Name
    role: Annotated[Name, Vocabulary.TENANT_ROLE]


class MemberRemoved(Event):
    username: Name


class MemberRoleChanged(Event):
    username: Name
    old: Annotated[Name, Vocabulary.TENANT_ROLE]
    new: Annotated[Name, Vocabulary.TENANT_ROLE]
