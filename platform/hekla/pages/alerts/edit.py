"""The form of an alert rule, with a preview: present values, and what it would have said in the last days."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from hekla.apps.alerts import checks, labels, measures, preview, selectors, services
from hekla.apps.alerts.models import AlertRule
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.alert_rules import AlertRuleSpec
from hekla.domain.errors import HeklaError
from hekla.lib import clock
from hekla.pages.alerts.forms import AlertRuleChangeForm, AlertRuleForm, attach_problems, first_values
from hekla.pages.alerts.views import rule_page
from hekla.pages.frame.people import person


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Add a rule about the platform."""
    return _create(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
def create_for(request: HttpRequest, slug: str) -> HttpResponse:
    """Add a rule about a tenant."""
    return _create(request, tenancy.get(slug, person(request)))


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Change a rule. From then on it acts with the rights of this person."""
    rule = selectors.get(uid, person(request))
    services.require_right(rule.tenant, person(request))

    def stored() -> dict[str, Any]:
        return first_values(selectors.spec_of(selectors.get(uid, person(request))))

    form = AlertRuleChangeForm(request.POST or None, stored=stored, tenant=rule.tenant, user=person(request))
    extra: dict[str, Any] = {}
    if request.method == "POST" and form.is_valid():
        try:
            spec = form.spec()
            if "preview" in request.POST:
                extra = _preview(spec, rule.tenant, request)
            else:
                with form.saving():
                    _rule, secret = services.change(rule, spec, user=person(request), now=clock.now())
                return rule_page(request, uid, secret=secret) if secret else redirect("alerts:detail", uid)
        except HeklaError as error:
            attach_problems(form, error)
    cancel = reverse("alerts:detail", args=[uid])
    return _page(request, form, {"rule": rule, "tenant": rule.tenant, "submit": _("Save"), "cancel": cancel, **extra})


def _create(request: HttpRequest, tenant: Tenant | None) -> HttpResponse:
    services.require_right(tenant, person(request))
    form = AlertRuleForm(request.POST or None, tenant=tenant, user=person(request))
    extra: dict[str, Any] = {}
    if request.method == "POST" and form.is_valid():
        try:
            spec = form.spec()
            if "preview" in request.POST:
                extra = _preview(spec, tenant, request)
            else:
                return _made(request, *services.create(spec=spec, tenant=tenant, user=person(request), now=clock.now()))
        except HeklaError as error:
            attach_problems(form, error)
    context = {"tenant": tenant, "submit": _("Create"), "cancel": reverse("alerts:list")}
    return _page(request, form, {**context, **extra})


def _made(request: HttpRequest, rule: AlertRule, secret: str) -> HttpResponse:
    return rule_page(request, rule.uid, secret=secret) if secret else redirect("alerts:detail", rule.uid)


def _preview(spec: AlertRuleSpec, tenant: Tenant | None, request: HttpRequest) -> dict[str, Any]:
    """What the rule would say. Raises Invalid, NotFound."""
    checks.require(spec, tenant, person(request))
    now, unit = clock.now(), measures.find(spec.measure).unit
    present, past = preview.now_of(spec, tenant, now=now), preview.past_of(spec, tenant, now=now)
    return {
        "present": present,
        "past": past,
        "values": [(one.subject.name, labels.amount(one.value, unit), one.is_breach) for one in present.values],
        "episodes": [(one, labels.amount(one.peak, unit)) for one in past.episodes],
    }


def _page(request: HttpRequest, form: AlertRuleForm, context: dict[str, Any]) -> HttpResponse:
    rule = context.get("rule")
    title = rule.name if rule else _("New alert rule")
    return render(request, "alerts/form.html", {"form": form, "title": title, **context})
