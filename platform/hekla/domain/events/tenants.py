"""Events of tenants and departments: their settings, quotas, retention and members."""

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
    """`changes`: its fields, and its heads and tenants as lists of names."""

    name: Name
    changes: Changes


class QuotaSet(Event):
    """`of`: the tenant, each of its members, or one member, whose name is in `username`."""

    of: Name
    username: str = Field(default="", max_length=150)
    changes: Changes


class IdlePolicyChanged(Event):
    """The rule for idle sessions of a tenant, or of the whole platform."""

    changes: Changes


class LogsPurged(Event):
    """The logs of this number of deleted jobs were removed after the tenant's retention period."""

    jobs: int


class HistoryPurged(Event):
    """This number of deleted jobs and their events were removed after the tenant's retention period."""

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
