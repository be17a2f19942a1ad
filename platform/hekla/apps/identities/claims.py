"""What a provider is, and what it says of somebody."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from django.utils.translation import gettext as _

from hekla.domain.errors import Refused

_LONGEST_SUBJECT = 255


class Provider(Protocol):
    """One of them, as the settings hold it. Who comes for the first time needs an invitation, or a verified address in
    one of `domains`; then they become members of `tenant`, where one is named.
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
    """What a provider says of somebody, once it was checked that it is the provider who says it."""

    issuer: str
    subject: str
    username: str
    name: str
    domain: str
    """That of the address, where the provider has verified it."""


class ProviderFailed(Refused):
    """The provider refused, could not be reached, or said what does not hold."""


def read(provider: Provider, token: Mapping[str, Any]) -> Claims:
    """Claims out of a checked token. Raises ProviderFailed where it is another issuer's, or names nobody."""
    issuer, subject = str(token.get("iss", "")), str(token.get("sub", ""))
    if issuer.rstrip("/") != provider.issuer.rstrip("/") or not 0 < len(subject) <= _LONGEST_SUBJECT:
        raise failed(provider, ValueError(_("the answer comes from another issuer")))
    email = str(token.get("email", "")) if token.get("email_verified") is True else ""
    username = str(token.get("preferred_username") or token.get("nickname") or email.partition("@")[0])
    return Claims(provider.issuer, subject, username, str(token.get("name", "")), email.rpartition("@")[2].lower())


def failed(provider: Provider, error: Exception) -> ProviderFailed:
    """Why it failed, as people read it."""
    facts = {"provider": provider.label, "why": getattr(error, "description", "") or str(error)[:300]}
    return ProviderFailed(_("Sign-in with %(provider)s failed: %(why)s.") % facts)
