"""The page of a tenant's quotas: the limits of the tenant and its members, and their usage."""

from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.forms import attach
from hekla.apps.quotas import selectors, services
from hekla.apps.quotas.forms import BOUNDS, QuotaForm, key_of
from hekla.apps.quotas.models import Quota
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.apps.usage import quota_usage
from hekla.domain.errors import Forbidden, HeklaError
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import listing
from hekla.pages.quotas.tables import SEARCH, QuotasTable


@require_http_methods(["GET", "POST"])
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """Show limits and usage. People with permission set limits here."""
    user, now = person(request), clock.now()
    tenant = tenancy.get(slug, user)
    allowed = [of for of in Quota.Of if selectors.may_set(user, tenant, of)]
    members = [member.user for member in tenancy.members(tenant)]
    form = QuotaForm(request.POST or None, initial=_first(request, tenant), allowed=allowed, members=members)
    if request.method == "POST":
        if not allowed:
            raise Forbidden(_("Only tenant admins and platform admins can set quotas."))
        if form.is_valid() and _saved(form, tenant, user, now):
            messages.success(request, _("Saved."))
            return redirect("tenancy:quotas", slug)
    hidden = () if allowed else ("edit",)
    quotas = listing(request, QuotasTable, quota_usage.visible_rows(user, tenant, now), SEARCH, exclude=hidden)
    return render(
        request, "quotas/detail.html", {"tenant": tenant, "quotas": quotas, "form": form if allowed else None}
    )


def _saved(form: QuotaForm, tenant: Tenant, user: User, now: datetime) -> bool:
    try:
        services.set_quota(tenant=tenant, **form.values(), by=user, actor=actor_of(user), now=now)
    except HeklaError as error:
        attach(form, error)
    return form.is_valid()


def _first(request: HttpRequest, tenant: Tenant) -> dict[str, Any]:
    """Initial values of the form: the quota that the address names."""
    whose = request.GET.get("whose", "")
    quota = next((one for one in selectors.of_tenant(tenant) if key_of(one) == whose), None)
    bounds = {name: getattr(quota, name) for name in BOUNDS} if quota else {}
    return {"whose": whose, **bounds}
