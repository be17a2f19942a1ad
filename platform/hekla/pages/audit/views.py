"""The page of the audit log."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hekla.apps.event_log.words import KINDS
from hekla.apps.tenancy import audit
from hekla.pages.frame.people import person


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """List audited actions, newest first."""
    user, query = person(request), audit.parse_query(request.GET.dict())
    acts = audit.acts(user, query, most=audit.PAGE + 1)
    context = {
        "acts": acts[: audit.PAGE],
        "older": acts[audit.PAGE - 1].event.pk if len(acts) > audit.PAGE else None,
        "query": query,
        "tenants": audit.audited(user),
        "kinds": sorted(KINDS.items(), key=lambda kind: str(kind[1])),
    }
    return render(request, "tenancy/audit.html", context)
