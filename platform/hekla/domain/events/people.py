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


class SignedIn(Event):
    """`method` is how: password, link, token, or an identity provider's name."""

    username: Name
    method: Name
    address: Name = ""


class OtherSessionsRevoked(Event):
    """In so many browsers: by the person, or by a platform admin."""

    username: Name
    browsers: int


class SecondFactorAdded(Event):
    """From now on the code of an app is asked for when this person signs in."""


class SecondFactorRemoved(Event):
    """The app, by the person; or by a platform admin all that the person had."""

    username: Name


class SecurityKeyAdded(Event):
    """From now on this security key or passkey, as the person calls it, proves them."""

    name: Name


class SecurityKeyRemoved(Event):
    name: Name


class RecoveryCodesGenerated(Event):
    """Those from before do not work any more."""


class RecoveryCodeUsed(Event):
    left: int


class IdentityConnected(Event):
    """From now on this person may come from that provider."""

    provider: Name


class IdentityDisconnected(Event):
    provider: Name


class TokenCreated(Event):
    name: Name
    scopes: Annotated[tuple[Name, ...], Field(max_length=64)] = ()
    expires_at: datetime | None = None


class TokenRevoked(Event):
    name: Name


class ImpersonationStarted(Event):
    """An admin acts for this person, for this reason, and no longer than that."""

    username: Name
    reason: Name
    until: datetime


class ImpersonationEnded(Event):
    """The admin acts for this person no more."""

    username: Name
