"""Adding and removing security keys and passkeys. The page is that of the second factor."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from hekla.apps.forms import attach
from hekla.apps.signin import challenges, services
from hekla.apps.signin.challenges import Purpose
from hekla.domain.errors import HeklaError
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.signin.entry import freshly_proved
from hekla.pages.signin.factor_page import factor_page, recovery_codes_page
from hekla.pages.signin.forms import NewKeyForm


@never_cache
@require_POST
@freshly_proved
def add(request: HttpRequest) -> HttpResponse:
    """Add a security key."""
    form, user = NewKeyForm(request.POST), person(request)
    challenge = challenges.take(request, Purpose.ADD, user)
    if not form.is_valid():
        return factor_page(request, key_form=form)
    name, answer = form.cleaned_data["name"], form.cleaned_data["credential"]
    try:
        fresh = services.add_key(user, name=name, answer=answer, challenge=challenge, now=clock.now())
    except HeklaError as error:
        attach(form, error)
        return factor_page(request, key_form=form)
    messages.success(request, _("Key “%s” added.") % name)
    return recovery_codes_page(request, fresh)


@require_POST
@freshly_proved
def remove(request: HttpRequest, key_id: int) -> HttpResponse:
    """Remove a security key."""
    services.remove_key(person(request), key_id, now=clock.now())
    messages.success(request, _("Key removed."))
    return redirect("accounts:second_factor")
