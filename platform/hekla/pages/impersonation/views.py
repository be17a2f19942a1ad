"""Impersonation: asking for a reason, and the end."""

from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts import services as account_services
from hekla.apps.accounts.roles import Permission
from hekla.apps.forms import attach
from hekla.apps.impersonation import selectors, services
from hekla.domain.errors import HeklaError, NotFound
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.impersonation import sessions
from hekla.pages.impersonation.forms import ReasonForm
from hekla.pages.signin.entry import freshly_proved


@require_http_methods(["GET", "POST"])
def impersonate(request: HttpRequest, user_id: int) -> HttpResponse:
    """Start to act for a person."""
    account_services.require(person(request), Permission.ACT_FOR_PEOPLE)
    return _impersonate(request, user_id)


@partial(freshly_proved, page="accounts:impersonate")
def _impersonate(request: HttpRequest, user_id: int) -> HttpResponse:
    user = get_object_or_404(accounts.everybody(), pk=user_id)
    form = ReasonForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            impersonation = services.begin(
                user, reason=form.cleaned_data["reason"], by=person(request), now=clock.now()
            )
        except HeklaError as error:
            attach(form, error)
        else:
            sessions.enter(request, impersonation.pk)
            return redirect("home")
    return render(request, "impersonation/act_for.html", {"form": form, "person": user})


@require_POST
def end(request: HttpRequest) -> HttpResponse:
    """Stop acting for a person. Raises NotFound for people who act for no one."""
    impersonation_id = request.session.get(selectors.KEY)
    if impersonation_id is None:
        raise NotFound(_("You are no longer acting for another person."))
    other = services.end(impersonation_id, by=person(request), now=clock.now())
    sessions.leave(request)
    if other is not None:
        messages.success(request, _("You stopped acting for %s.") % other)
    return redirect("accounts:list")
