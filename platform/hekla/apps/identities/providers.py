"""The providers that this console knows, and speaking to them: discovery, PKCE, state and nonce are Authlib's.

Authlib's own integration with Django brings the client `requests`; here its parts work with the console's HTTP client.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import httpx2
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.base_client import BaseApp, FrameworkIntegration, OAuth2Mixin, OAuthError, OpenIDMixin
from authlib.integrations.httpx_client import OAuth2Client
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from joserfc.errors import JoseError

from hekla.domain.errors import NotFound, Refused

_TIMEOUT_SECONDS = 10
_LONGEST_SUBJECT = 255
_FAILURES = (AuthlibBaseError, JoseError, httpx2.HTTPError, httpx2.InvalidURL, RuntimeError, ValueError)


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


def every() -> tuple[Provider, ...]:
    """All of them."""
    return tuple(settings.OIDC_PROVIDERS)


def named(name: str) -> Provider:
    """The one of that name. Raises NotFound."""
    for provider in every():
        if provider.name == name:
            return provider
    raise NotFound(_("Unknown provider."))


def send_there(provider: Provider, request: HttpRequest, back_to: str) -> HttpResponse:
    """To the provider's own sign-in. Raises ProviderFailed."""
    client = _client(provider)
    try:
        parameters = client.create_authorization_url(back_to)
    except _FAILURES as error:
        raise _failed(provider, error) from error
    state, url = parameters.pop("state"), parameters["url"]
    client.framework.set_state_data(request.session, state, {"redirect_uri": back_to, **parameters})
    return HttpResponseRedirect(url)


def claims_of(provider: Provider, request: HttpRequest) -> Claims:
    """Who came back from there. Raises ProviderFailed."""
    try:
        found = _exchange_code(_client(provider), request)
    except _FAILURES as error:
        raise _failed(provider, error) from error
    return read(provider, found)


def _exchange_code(client: "_Client", request: HttpRequest) -> Mapping[str, Any]:
    """The claims of the checked ID token; none where the provider gave no such token."""
    if error := request.GET.get("error"):
        raise OAuthError(error=error, description=request.GET.get("error_description"))
    state = request.GET.get("state")
    kept = client.framework.get_state_data(request.session, state)
    client.framework.clear_state_data(request.session, state)
    parameters = client._format_state_params(kept, {"code": request.GET.get("code"), "state": state})
    token = client.fetch_access_token(**parameters)
    claims: Mapping[str, Any] | None = client.parse_id_token(token, nonce=kept.get("nonce"))
    return claims or {}


def read(provider: Provider, told: Mapping[str, Any]) -> Claims:
    """Claims out of a checked token. Raises ProviderFailed where it is another issuer's, or names nobody."""
    issuer, subject = str(told.get("iss", "")), str(told.get("sub", ""))
    if issuer.rstrip("/") != provider.issuer.rstrip("/") or not 0 < len(subject) <= _LONGEST_SUBJECT:
        raise _failed(provider, ValueError(_("the answer comes from another issuer")))
    email = str(told.get("email", "")) if told.get("email_verified") is True else ""
    username = str(told.get("preferred_username") or told.get("nickname") or email.partition("@")[0])
    return Claims(provider.issuer, subject, username, str(told.get("name", "")), email.rpartition("@")[2].lower())


class _Client(OAuth2Mixin, OpenIDMixin, BaseApp):  # type: ignore[misc]  # Authlib has no types
    """Authlib's client of one provider, with the console's HTTP client."""

    client_cls = OAuth2Client


@lru_cache
def _client(provider: Provider) -> _Client:
    base = provider.issuer.rstrip("/")
    return _Client(
        FrameworkIntegration(provider.name),
        provider.name,
        client_id=provider.client_id,
        client_secret=provider.client_secret,
        server_metadata_url=f"{base}/.well-known/openid-configuration",
        client_kwargs={
            "scope": "openid profile email",
            "code_challenge_method": "S256",
            "timeout": _TIMEOUT_SECONDS,
            "follow_redirects": True,
        },
    )


def _failed(provider: Provider, error: Exception) -> ProviderFailed:
    facts = {"provider": provider.label, "why": getattr(error, "description", "") or str(error)[:300]}
    return ProviderFailed(_("Sign-in with %(provider)s failed: %(why)s.") % facts)
