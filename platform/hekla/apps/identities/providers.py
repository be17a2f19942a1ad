"""The providers that this console knows."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from hekla.apps.identities.claims import Claims, Provider, read
from hekla.domain.errors import NotFound


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
    from hekla.apps.identities import oidc  # noqa: PLC0415  (it is seldom needed, and slow to load)

    return oidc.send_there(provider, request, back_to)


def claims_of(provider: Provider, request: HttpRequest) -> Claims:
    """Who came back from there. Raises ProviderFailed."""
    from hekla.apps.identities import oidc  # noqa: PLC0415

    return read(provider, oidc.claims_of(provider, request))
