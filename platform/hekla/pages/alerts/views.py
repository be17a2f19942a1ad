"""Pages of alerts: what fires now, the rules, and one rule with its history."""

from datetime import timedelta
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from hekla.apps.alerts import selectors, services
from hekla.apps.event_log import selectors as event_log
from hekla.apps.forms import attach
from hekla.domain.errors import Forbidden, HeklaError, Refused
from hekla.lib import clock
from hekla.pages.alerts import parts
from hekla.pages.alerts.forms import SilenceForm
from hekla.pages.alerts.tables import AlertRulesFilter, AlertRulesTable
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import listing


@require_safe
def alerts(request: HttpRequest) -> HttpResponse:
    """List what fires now, and the rules."""
    user, since = person(request), event_log.last_number()
    rules = listing(request, AlertRulesTable, selectors.visible_to(user), AlertRulesFilter)
    return render(request, "alerts/list.html", {"since": since, **parts.list_of(rules, user)})


@require_safe
def detail(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Show one rule: its settings, states, history and actions."""
    return rule_page(request, uid)


@require_POST
def enable(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Turn the rule on or off."""
    is_on = request.POST.get("enable") == "yes"
    services.change(selectors.get(uid, person(request)), {"enabled": is_on}, user=person(request), now=clock.now())
    return redirect("alerts:detail", uid)


@require_POST
def silence(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Silence the rule for some hours, or end that. A refusal shows the typed values."""
    rule, user, now = selectors.get(uid, person(request)), person(request), clock.now()
    services.require_right(rule.tenant, user)
    if request.POST.get("end") == "yes":
        services.silence(rule, until=None, reason="", user=user, now=now)
        return redirect("alerts:detail", uid)
    form = SilenceForm(request.POST)
    if form.is_valid():
        until = now + timedelta(hours=form.cleaned_data["hours"])
        try:
            services.silence(rule, until=until, reason=form.cleaned_data["reason"], user=user, now=now)
        except Forbidden:
            raise
        except HeklaError as error:
            attach(form, error)
        else:
            return redirect("alerts:detail", uid)
    return rule_page(request, uid, form=form)


@require_POST
def veto(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Forbid a change that a rule has announced."""
    action = selectors.action(uid, person(request))
    try:
        services.veto(action, user=person(request), now=clock.now())
    except Forbidden:
        raise
    except Refused as error:
        messages.error(request, error.message)
    return redirect("alerts:detail", action.rule.uid)


@require_POST
def renew_secret(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Create a new webhook secret, and show it once."""
    secret = services.renew_secret(selectors.get(uid, person(request)), user=person(request), now=clock.now())
    return rule_page(request, uid, secret=secret)


@require_POST
def delete(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Delete the rule."""
    rule = selectors.get(uid, person(request))
    try:
        services.delete(rule, user=person(request), now=clock.now())
    except Forbidden:
        raise
    except Refused as error:
        messages.error(request, error.message)
        return redirect("alerts:detail", uid)
    messages.success(request, _("Deleted alert rule %s.") % rule)
    return redirect("alerts:list")


def rule_page(request: HttpRequest, uid: UUID, *, form: SilenceForm | None = None, secret: str = "") -> HttpResponse:
    """The page of a rule. `secret`: of its webhook, shown once."""
    since = event_log.last_number()
    context = parts.detail_of(selectors.get(uid, person(request)), person(request))
    return render(
        request, "alerts/detail.html", {"since": since, "form": form or SilenceForm(), "secret": secret, **context}
    )
