"""The idle rule of all tenants, that of one, and the GPUs of a job against it."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from hekla.apps.forms import attach
from hekla.apps.idleness import selectors, services
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import HeklaError
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.idleness.forms import FIELDS, IdleRuleForm


@require_http_methods(["GET", "HEAD", "POST"])
def platform_rule(request: HttpRequest) -> HttpResponse:
    """The rule for the sessions of all tenants."""
    return _rule(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
def tenant_rule(request: HttpRequest, slug: str) -> HttpResponse:
    """The rule for the sessions of one tenant."""
    return _rule(request, tenancy.get(slug, person(request)))


def _rule(request: HttpRequest, tenant: Tenant | None) -> HttpResponse:
    services.require_right(tenant, person(request))
    form = IdleRuleForm(request.POST or None, stored=lambda: _stored(tenant))
    if request.method == "POST" and form.is_valid():
        try:
            with form.saving():
                services.set_rule(tenant, form.cleaned_data, user=person(request), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect(request.path)
    context = {
        "form": form,
        "tenant": tenant,
        "submit": _("Save"),
        "cancel": reverse("tenancy:detail", args=[tenant.slug]) if tenant else "",
        "of_all": selectors.policy_of(None) if tenant else None,
    }
    return render(request, "idleness/rule.html", context)


def _stored(tenant: Tenant | None) -> dict[str, object]:
    policy = selectors.policy_of(tenant)
    return {name: getattr(policy, name) for name in FIELDS}
