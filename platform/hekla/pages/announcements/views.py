"""Pages of announcements."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import require
from hekla.apps.announcements import selectors, services
from hekla.apps.forms import attach
from hekla.domain.errors import HeklaError
from hekla.lib import clock
from hekla.pages.announcements.forms import AnnouncementForm
from hekla.pages.frame.people import person


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """List the announcements."""
    user, now = person(request), clock.now()
    context = {
        "announcements": selectors.visible_to(user, now=now)[: services.MOST],
        "now": now,
        "may_announce": accounts.may(user, Permission.ANNOUNCE),
    }
    return render(request, "announcements/list.html", context)


@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Write an announcement."""
    require(person(request), Permission.ANNOUNCE)
    form = AnnouncementForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        tenants = form.cleaned_data["tenants"]
        try:
            services.announce(values=form.values(), tenants=tenants, user=person(request), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            return redirect("announcements:list")
    context = {"form": form, "title": _("New announcement"), "submit": _("Announce")}
    return render(request, "form_page.html", context | {"cancel": reverse("announcements:list")})


@require_POST
def withdraw(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Delete an announcement."""
    user, now = person(request), clock.now()
    services.withdraw(selectors.get(uid, user, now=now), user=user, now=now)
    messages.success(request, _("Announcement withdrawn."))
    return redirect("announcements:list")


@require_POST
def dismiss(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Hide an announcement from this person, and return to the page with the banner."""
    user, now = person(request), clock.now()
    services.dismiss(selectors.get(uid, user, now=now), user=user, now=now)
    back = request.POST.get("back", "")
    is_ours = url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure())
    return redirect(back if is_ours else reverse("home"))
