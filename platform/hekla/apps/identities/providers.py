"""The configured identity providers."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from hekla.apps.identities.claims import Claims, Provider, read
from hekla.domain.errors import NotFound


def every() -> tuple[Provider, ...]:
    """All providers, in the order of the settings."""
    return tuple(settings.OIDC_PROVIDERS)


def named(name: str) -> Provider:
    """The provider with this name. Raises NotFound."""
    for provider in every():
        if provider.name == name:
            return provider
    raise NotFound(_("Unknown provider."))


def send_there(provider: Provider, request: HttpRequest, back_to: str) -> HttpResponse:
    """A redirect to the provider's sign-in page. Raises ProviderFailed."""
    from hekla.apps.identities import oidc  # noqa: PLC0415  (rarely needed, and slow to import)

    return oidc.send_there(provider, request, back_to)


def claims_of(provider: Provider, request: HttpRequest) -> Claims:
    """The verified claims about the person who returns from the provider. Raises ProviderFailed."""
    from hekla.apps.identities import oidc  # noqa: PLC0415

    return read(provider, oidc.claims_of(provider, request))
