"""Pages of flows: the list, the start, and one flow with its actions."""

from collections.abc import Callable, Mapping
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hekla.apps.event_log import selectors as event_log
from hekla.apps.flows import overview, selectors, services
from hekla.apps.flows.facts import spec_of
from hekla.apps.flows.models import Flow
from hekla.apps.forms import attach
from hekla.apps.tenancy.models import Tenant
from hekla.domain import formats
from hekla.domain.errors import HeklaError, Invalid, Problem
from hekla.lib import clock
from hekla.pages.flows import drafts, starters
from hekla.pages.flows.forms import FlowForm
from hekla.pages.flows.tables import flows_on
from hekla.pages.frame import current_tenant, downloads
from hekla.pages.frame.people import person
from hekla.pages.job_forms.manifest_forms import MAX_MANIFEST_BYTES, yaml_editor
from hekla.pages.submit import choices, manifest_checks


@require_safe
def flows(request: HttpRequest) -> HttpResponse:
    """List the flows that the person may see."""
    since = event_log.last_number()
    return render(request, "flows/list.html", {"since": since, "flows": flows_on(request, person(request))})


@require_safe
def detail(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Show one flow."""
    since = event_log.last_number()
    flow = selectors.get(uid, person(request))
    context = overview.detail(flow, person(request)) | {"manifest": formats.dump_flow(spec_of(flow)), "since": since}
    return render(request, "flows/detail.html", context)


@require_http_methods(["GET", "POST"])
def start(request: HttpRequest) -> HttpResponse:
    """Start a flow from a manifest, which is validated as a whole before any job runs."""
    tenant = current_tenant.tenant(request)
    if tenant is None:
        return render(request, "jobs/no_tenant.html")
    if (answer := _BESIDE.get(request.POST.get("do", ""))) is not None:
        return answer(request, tenant)
    form = FlowForm(request.POST or None, request.FILES or None, initial={"text": _first(request, tenant)})
    if request.method == "POST" and form.is_valid():
        try:
            started = _start(request, form.cleaned_data["text"], tenant)
        except HeklaError as error:
            form = FlowForm({"text": form.cleaned_data["text"]})
            form.is_valid()
            attach(form, error)
        else:
            return redirect("flows:detail", started.uid)
    form.fields["text"].widget.attrs |= yaml_editor(request)
    context = {"tenant": tenant, "form": form, "most_bytes": MAX_MANIFEST_BYTES, "draft": request.GET.get("again", "")}
    return render(request, "flows/start.html", context)


def _checked(request: HttpRequest, tenant: Tenant) -> JsonResponse:
    """The problems of the manifest by line, and what can be typed in it, while a person edits it."""
    text = request.POST.get("text", "")[:MAX_MANIFEST_BYTES]
    offered = choices.offered_values(tenant)
    return JsonResponse(manifest_checks.check(text, formats.inspect_flow(text), lambda _loaded: [], offered))


_BESIDE: Mapping[str, Callable[[HttpRequest, Tenant], HttpResponse]] = {
    "check": _checked,
    "draw": drafts.drawn,
    "edit": drafts.edited,
}
"""What the form's scripts request while a person types and draws."""


def _first(request: HttpRequest, tenant: Tenant) -> str:
    if request.method != "GET":
        return ""
    try:
        uid = UUID(request.GET.get("again", ""))
    except ValueError:
        return starters.first(tenant)
    return starters.again(selectors.get(uid, person(request)), tenant)


def _start(request: HttpRequest, text: str, tenant: Tenant) -> Flow:
    loaded = formats.load_flow(text)
    if loaded.flow is None:
        raise Invalid([Problem("", _("The text has no JobFlow. Save single templates on the page Templates."))])
    try:
        applied = services.apply(
            templates=loaded.templates, flow=loaded.flow, tenant=tenant, user=person(request), now=clock.now()
        )
    except HeklaError as error:
        raise loaded.translate_paths(error) from error
    assert applied.flow is not None  # noqa: S101  (`loaded.flow` is not None)
    for warning in (*loaded.warnings, *applied.warnings):
        messages.warning(request, warning)
    return applied.flow


@require_POST
def stop(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Start no more steps, and stop the running ones."""
    services.stop(selectors.get(uid, person(request)), user=person(request), now=clock.now())
    return redirect("flows:detail", uid)


@require_POST
def delete(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Delete a flow that has ended from the lists."""
    flow = selectors.get(uid, person(request))
    services.delete(flow, user=person(request), now=clock.now())
    messages.success(request, _("Deleted %s. Its history stays in the event log.") % flow)
    return redirect("flows:list")


@require_safe
def manifest(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Download the flow's manifest."""
    flow = selectors.get(uid, person(request))
    return downloads.manifest(formats.dump_flow(spec_of(flow)), flow.name)
