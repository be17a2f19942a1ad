"""Pages of uploaded traces: files of other schedulers whose jobs experiments can run. For operators."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hekla.apps.forms import attach
from hekla.apps.policy_lab import selectors, services
from hekla.domain.errors import HeklaError
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import listing
from hekla.pages.policy_lab import figures
from hekla.pages.policy_lab.forms import TraceForm
from hekla.pages.policy_lab.tables import TracesTable
from hekla.simulation import policy_lab


@require_http_methods(["GET", "POST"])
def show_all(request: HttpRequest) -> HttpResponse:
    """List the traces, with the form of an upload; a POST uploads one."""
    user = person(request)
    rows = selectors.traces(user)
    form = TraceForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        name, kind, content = form.cleaned_data["name"], form.cleaned_data["format"], form.content()
        try:
            found = policy_lab.upload_trace(name=name, form=kind, content=content, user=user, now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            return redirect("policy_lab:trace", found.uid)
    context = {"traces": listing(request, TracesTable, rows), "form": form, "most": services.MAX_TRACES}
    return render(request, "policy_lab/traces.html", context)


@require_safe
def show(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Show what is in a trace."""
    user = person(request)
    row = selectors.trace(user, uid)
    context = {"row": row, "facts": figures.trace_facts(row), "notes": figures.trace_notes(row)}
    return render(request, "policy_lab/trace.html", context | {"may_delete": selectors.may_delete(user, row)})


@require_POST
def delete(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Delete a trace."""
    user = person(request)
    services.delete_trace(selectors.trace(user, uid), user=user, now=clock.now())
    messages.success(request, _("Deleted."))
    return redirect("policy_lab:traces")
