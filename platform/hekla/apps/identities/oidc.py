"""The OpenID Connect client: Authlib does discovery, PKCE, state and nonce.

Authlib's own integration with Django requires `requests`; here its parts work with the console's HTTP client. This
module is imported at the first sign-in with a provider, which most consoles never have.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import httpx2
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.base_client import BaseApp, FrameworkIntegration, OAuth2Mixin, OAuthError, OpenIDMixin
from authlib.integrations.httpx_client import OAuth2Client
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from joserfc.errors import JoseError

from hekla.apps.identities.claims import Provider, failed

_TIMEOUT_SECONDS = 10
_FAILURES = (AuthlibBaseError, JoseError, httpx2.HTTPError, httpx2.InvalidURL, RuntimeError, ValueError)


def send_there(provider: Provider, request: HttpRequest, back_to: str) -> HttpResponse:
    """A redirect to the provider's sign-in page. Raises ProviderFailed."""
    client = _client(provider)
    try:
        parameters = client.create_authorization_url(back_to)
    except _FAILURES as error:
        raise failed(provider, error) from error
    state, url = parameters.pop("state"), parameters["url"]
    client.framework.set_state_data(request.session, state, {"redirect_uri": back_to, **parameters})
    return HttpResponseRedirect(url)


def claims_of(provider: Provider, request: HttpRequest) -> Mapping[str, Any]:
    """The verified claims about the person who returns from the provider. Raises ProviderFailed."""
    try:
        return _exchange_code(_client(provider), request)
    except _FAILURES as error:
        raise failed(provider, error) from error


def _exchange_code(client: "_Client", request: HttpRequest) -> Mapping[str, Any]:
    """The claims of the verified ID token; empty if the provider sent none."""
    if error := request.GET.get("error"):
        raise OAuthError(error=error, description=request.GET.get("error_description"))
    state = request.GET.get("state")
    state_data = client.framework.get_state_data(request.session, state)
    client.framework.clear_state_data(request.session, state)
    parameters = client._format_state_params(state_data, {"code": request.GET.get("code"), "state": state})
    token = client.fetch_access_token(**parameters)
    claims: Mapping[str, Any] | None = client.parse_id_token(token, nonce=state_data.get("nonce"))
    return claims or {}


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
            "verify": httpx2.create_ssl_context(),  # once: each request has a client, and to load certificates is slow
        },
    )
