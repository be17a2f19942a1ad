"""Sign-in through an identity provider: the redirect there, and the way back."""

from datetime import timedelta

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from hekla.apps.accounts.models import User
from hekla.apps.identities import providers, selectors, services
from hekla.apps.identities.claims import Claims, Provider, ProviderFailed
from hekla.apps.signin.limits import counted_by_address
from hekla.domain.errors import HeklaError
from hekla.lib import clock
from hekla.pages.frame.paging import paged
from hekla.pages.frame.people import person
from hekla.pages.signin import entry
from hekla.pages.signin.entry import freshly_proved

_TRIP, _CONNECT = "oidc_trip", "oidc_connect"
_CONSENT_LASTS = timedelta(minutes=10)
_ROWS = 20


@login_not_required
@counted_by_address
@never_cache
@require_safe
def start(request: HttpRequest, name: str) -> HttpResponse:
    """Redirect to the provider. The session stores where to go afterwards, or which invitation to accept.

    This is a link, not a form, because the content security policy blocks form submissions to other sites.
    """
    provider, target = providers.named(name), request.GET.get("next", "")
    safe = url_has_allowed_host_and_scheme(target, {request.get_host()})
    back_to = f"{settings.PUBLIC_URL.rstrip('/')}{reverse('accounts:oidc_back', args=[name])}"
    try:
        answer = providers.send_there(provider, request, back_to)
    except ProviderFailed as refusal:
        return _failed(request, refusal)
    request.session[_TRIP] = {"next": target if safe else "", "invitation": request.GET.get("invitation", "")[:100]}
    return answer


@login_not_required
@counted_by_address
@never_cache
@require_safe
def back(request: HttpRequest, name: str) -> HttpResponse:
    """Return from the provider: sign in, sign up, or link the identity to the account."""
    provider, trip = providers.named(name), request.session.pop(_TRIP, {})
    consent = request.session.pop(_CONNECT, {})
    try:
        claims = providers.claims_of(provider, request)
        if isinstance(request.user, User) and _has_consented(consent, provider):
            return _connected(request, provider, claims)
        user = services.arrive(provider, claims, invitation=trip.get("invitation", ""), now=clock.now())
    except HeklaError as refusal:
        return _failed(request, refusal)
    return entry.enter(request, user, method=provider.name, target=trip.get("next") or "home")


@require_safe
def identities(request: HttpRequest) -> HttpResponse:
    """List the person's linked identities."""
    context = {"identities": paged(request, selectors.of(person(request)), size=_ROWS), "providers": providers.every()}
    return render(request, "identities/list.html", context)


@require_POST
@freshly_proved
def connect(request: HttpRequest, name: str) -> HttpResponse:
    """Ask a signed-in person to confirm before they link an identity of this provider."""
    provider = providers.named(name)
    request.session[_CONNECT] = {"provider": name, "at": clock.now().timestamp()}
    return render(request, "identities/connect.html", {"provider": provider})


@require_POST
@freshly_proved
def disconnect(request: HttpRequest, identity_id: int) -> HttpResponse:
    """Unlink an identity."""
    services.disconnect(person(request), identity_id, now=clock.now())
    messages.success(request, _("Removed."))
    return redirect("accounts:identities")


def _has_consented(consent: dict[str, object], provider: Provider) -> bool:
    age = clock.now().timestamp() - float(str(consent.get("at", 0)))
    return consent.get("provider") == provider.name and age <= _CONSENT_LASTS.total_seconds()


def _connected(request: HttpRequest, provider: Provider, claims: Claims) -> HttpResponse:
    services.connect(provider, claims, person(request), now=clock.now())
    messages.success(request, _("You can now sign in with %s.") % provider.label)
    return redirect("accounts:identities")


def _failed(request: HttpRequest, refusal: HeklaError) -> HttpResponse:
    return render(request, "identities/failed.html", {"refusal": refusal.message}, status=403)
