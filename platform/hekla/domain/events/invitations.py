"""Invitations. The subject is the tenant."""

from datetime import datetime
from typing import Annotated

from hekla.domain.events.base import Event, Name, Vocabulary


class PersonInvited(Event):
    """A person was invited to a tenant with this role. `email` is empty for an invitation by link."""

    email: Name = ""
    username: Name = ""
    role: Annotated[Name, Vocabulary.TENANT_ROLE]
    platform_role: Annotated[Name, Vocabulary.PLATFORM_ROLE] = ""
    expires_at: datetime


class InvitationResent(Event):
    """A new link was sent; the old one is no longer valid."""

    email: Name = ""
    expires_at: datetime


class InvitationRevoked(Event):
    email: Name = ""


class InvitationAccepted(Event):
    username: Name
