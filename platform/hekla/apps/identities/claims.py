"""Identity providers, and the claims that they make about a person."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from django.utils.translation import gettext as _

from hekla.domain.errors import Refused

_LONGEST_SUBJECT = 255


class Provider(Protocol):
    """A provider from the settings. A first sign-in needs an invitation, or a verified email address in one of
    `domains`; the latter makes the person a member of `tenant`, if one is set.
    """

    def __hash__(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def issuer(self) -> str: ...
    @property
    def client_id(self) -> str: ...
    @property
    def client_secret(self) -> str: ...
    @property
    def domains(self) -> tuple[str, ...]: ...
    @property
    def tenant(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Claims:
    """A provider's claims about a person, from a verified token."""

    issuer: str
    subject: str
    username: str
    name: str
    domain: str
    """The domain of the email address; empty if the provider has not verified the address."""


class ProviderFailed(Refused):
    """The provider refused, could not be reached, or sent an invalid answer."""


def read(provider: Provider, token: Mapping[str, Any]) -> Claims:
    """The claims of a verified token. Raises ProviderFailed for another issuer, or without a valid subject."""
    issuer, subject = str(token.get("iss", "")), str(token.get("sub", ""))
    if issuer.rstrip("/") != provider.issuer.rstrip("/") or not 0 < len(subject) <= _LONGEST_SUBJECT:
        raise failed(provider, ValueError(_("the answer comes from another issuer")))
    email = str(token.get("email", "")) if token.get("email_verified") is True else ""
    username = str(token.get("preferred_username") or token.get("nickname") or email.partition("@")[0])
    return Claims(provider.issuer, subject, username, str(token.get("name", "")), email.rpartition("@")[2].lower())


def failed(provider: Provider, error: Exception) -> ProviderFailed:
    """The error to show, with the reason."""
    facts = {"provider": provider.label, "why": getattr(error, "description", "") or str(error)[:300]}
    return ProviderFailed(_("Sign-in with %(provider)s failed: %(why)s.") % facts)
