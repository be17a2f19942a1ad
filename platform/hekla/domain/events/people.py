"""People, and how they sign in. The subject is the person."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from hekla.domain.events.base import Changes, Event, Name


class UserCreated(Event):
    username: Name


class UserChanged(Event):
    username: Name
    changes: Changes


class PasswordChanged(Event):
    username: Name


class SignInLinkCreated(Event):
    """An admin created a link that signs this person in once."""

    username: Name


class SignedIn(Event):
    """`method`: password, link, token, or the name of an identity provider."""

    username: Name
    method: Name
    address: Name = ""


class OtherSessionsRevoked(Event):
    """The sessions in this number of browsers were ended, by the person or by a platform admin."""

    username: Name
    browsers: int


class SecondFactorAdded(Event):
    """From now on, sign-in requires a code from the person's authenticator app."""


class SecondFactorRemoved(Event):
    """The person removed the app, or a platform admin removed all of the person's second factors."""

    username: Name


class SecurityKeyAdded(Event):
    """A security key or passkey was added. `name`: the person's name for it."""

    name: Name


class SecurityKeyRemoved(Event):
    name: Name


class RecoveryCodesGenerated(Event):
    """New recovery codes were generated; earlier ones are no longer valid."""


class RecoveryCodeUsed(Event):
    left: int


class MailAddressChanged(Event):
    """The person's notifications are mailed to another address. Empty: to none."""

    old: Name
    new: Name


class IdentityConnected(Event):
    """From now on, this person can sign in with that identity provider."""

    provider: Name


class IdentityDisconnected(Event):
    provider: Name


class TokenCreated(Event):
    """`is_sign_in`: a program signed in with the password, and got this short-lived token."""

    name: Name
    is_sign_in: bool = False
    scopes: Annotated[tuple[Name, ...], Field(max_length=64)] = ()
    expires_at: datetime | None = None


class TokenRevoked(Event):
    name: Name


class ImpersonationStarted(Event):
    """An admin acts for this person, for this reason and until this time."""

    username: Name
    reason: Name
    until: datetime


class ImpersonationEnded(Event):
    """The admin stopped acting for this person."""

    username: Name
