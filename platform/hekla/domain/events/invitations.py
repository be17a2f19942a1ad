"""Invitations. The subject is the tenant."""

from datetime import datetime
from typing import Annotated

from hekla.domain.events.base import Event, Name, Vocabulary


class PersonInvited(Event):
    """To a tenant, with this role in it; `email` is empty where a link was handed over."""

    email: Name = ""
    username: Name = ""
    role: Annotated[Name, Vocabulary.TENANT_ROLE]
    platform_role: Annotated[Name, Vocabulary.PLATFORM_ROLE] = ""
    expires_at: datetime


class InvitationResent(Event):
    """With a new link; the one before it ended."""

    email: Name = ""
    expires_at: datetime


class InvitationRevoked(Event):
    email: Name = ""


class InvitationAccepted(Event):
    username: Name
