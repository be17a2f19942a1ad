"""The page of a tenant's quotas: the limits of the tenant and its members, and their usage."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.forms import attach
from hekla.apps.jobs import spending
from hekla.apps.quotas import selectors, services
from hekla.apps.quotas.forms import BOUNDS, key_of
from hekla.apps.quotas.models import Quota
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.apps.usage import quota_usage
from hekla.domain.errors import Forbidden, HeklaError
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import listing
from hekla.pages.quotas.forms import QuotaChangeForm
from hekla.pages.quotas.tables import SEARCH, QuotasTable


@require_http_methods(["GET", "POST"])
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """Show limits and usage. People with permission set limits here."""
    user, now = person(request), clock.now()
    tenant = tenancy.get(slug, user)
    allowed = [of for of in Quota.Of if selectors.may_set(user, tenant, of)]
    members = [member.user for member in tenancy.members(tenant)]
    whose = request.POST.get("whose") or request.GET.get("whose") or next(iter(allowed), "")
    form = QuotaChangeForm(
        request.POST or None, stored=lambda: _stored(tenant, whose), allowed=allowed, members=members
    )
    if request.method == "POST":
        if not allowed:
            raise Forbidden(_("Only tenant admins and platform admins can set quotas."))
        if form.is_valid() and _saved(form, tenant, user, now):
            messages.success(request, _("Saved."))
            return redirect("tenancy:quotas", slug)
    hidden = () if allowed else ("edit",)
    quotas = listing(request, QuotasTable, quota_usage.visible_rows(user, tenant, now), SEARCH, exclude=hidden)
    context = {
        "tenant": tenant,
        "quotas": quotas,
        "form": form if allowed else None,
        "frozen_bytes": spending.frozen_bytes(tenant),
        "most_frozen_bytes": settings.KEEP_FAILED_BYTES,
    }
    return render(request, "quotas/detail.html", context)


def _saved(form: QuotaChangeForm, tenant: Tenant, user: User, now: datetime) -> bool:
    try:
        with form.saving():
            services.set_quota(tenant=tenant, **form.values(), by=user, actor=actor_of(user), now=now)
    except HeklaError as error:
        attach(form, error)
    return form.is_valid()


def _stored(tenant: Tenant, whose: str) -> dict[str, Any]:
    """The values of the form for the quota of this owner."""
    quota = next((one for one in selectors.of_tenant(tenant) if key_of(one) == whose), Quota())
    return {"whose": whose, **{name: getattr(quota, name) for name in BOUNDS}}
