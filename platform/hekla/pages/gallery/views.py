"""Pages of the gallery."""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hekla.apps.forms import attach
from hekla.apps.gallery import selectors, services
from hekla.apps.gallery.models import Template
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.facts import valid_spec
from hekla.apps.presets import selectors as presets
from hekla.apps.tenancy.models import Tenant
from hekla.domain import formats
from hekla.domain.errors import Forbidden, HeklaError, NotFound
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.pages.frame import current_tenant
from hekla.pages.frame.paging import paged
from hekla.pages.frame.people import person
from hekla.pages.gallery import cards
from hekla.pages.gallery.forms import FillForm, PublishChangeForm, PublishForm

_CARDS = 24


@require_safe
def gallery(request: HttpRequest) -> HttpResponse:
    """List the templates that the person may use: all, or those of one scope, or with a text."""
    scope, text = request.GET.get("scope", ""), request.GET.get("q", "")[:100]
    found = cards.cards(person(request), scope if scope in cards.SCOPES else "", text)
    scopes = [("", _("All")), *((str(one), word) for one, word in cards.SCOPES.items())]
    context = {"scopes": scopes, "scope": scope, "q": text, "templates": paged(request, found, size=_CARDS)}
    return render(request, "gallery/list.html", context)


@require_http_methods(["GET", "POST"])
def template(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Show a template, and submit a job from it with its open fields filled in."""
    tenant = _tenant(request)
    if tenant is None:
        return render(request, "jobs/no_tenant.html")
    found = selectors.get(uid, person(request))
    version = selectors.latest(found)
    spec, open_ = selectors.spec_of(version), selectors.open_fields(version)
    first = {"name": jobs.free_name(tenant, spec.name), "version": version.number}
    form = FillForm(request.POST or None, spec=spec, open_=open_, initial=first)
    if request.method == "POST" and form.is_valid():
        fields = {
            "name": form.cleaned_data["name"],
            "expected_version": form.cleaned_data["version"],
            "values": form.values(),
        }
        try:
            job = services.begin(found, **fields, tenant=tenant, user=person(request), now=clock.now())
        except HeklaError as error:
            form.show(error)
            form.look_again(version.number)
        else:
            return redirect("jobs:detail", job.uid)
    may_publish = selectors.may_publish(person(request), found.tenant_id)
    context = {"template": found, "form": form, "tenant": tenant, "may_publish": may_publish}
    return render(request, "gallery/template.html", context | {"manifest": formats.dump(spec)})


@require_POST
def withdraw(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Withdraw the template. Jobs that used it stay."""
    found = selectors.get(uid, person(request))
    services.withdraw(found, user=person(request), now=clock.now())
    messages.success(request, _("“%s” was withdrawn.") % found.title)
    return redirect("gallery:list")


@require_http_methods(["GET", "POST"])
def publish(request: HttpRequest) -> HttpResponse:
    """Publish a preset or job as a template, or the next version of a template. The form selects the open fields."""
    tenant, may_for_all = _tenant(request), selectors.may_publish(person(request), None)
    if not may_for_all and not (tenant and selectors.may_publish(person(request), tenant.pk)):
        raise Forbidden(
            _("Only admins can publish templates: tenant admins for their tenant, platform admins for all tenants.")
        )
    source = _source(request)
    if source is None:
        messages.info(request, _("Choose a saved template to publish, or open the page of a job."))
        return redirect("jobs:presets")
    form = _publish_form(request, source)
    if request.method == "POST" and form.is_valid():
        cleaned = form.cleaned_data
        fields = {"title": cleaned["title"], "description": cleaned["description"], "fields": form.open_fields()}
        fields |= {"tenant": None if cleaned["for_all"] else tenant, "template": source.template, "spec": source.spec}
        try:
            with form.saving() if isinstance(form, PublishChangeForm) else nullcontext():
                made = services.publish(**fields, user=person(request), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            return redirect("gallery:template", made.uid)
    context = {"tenant": tenant, "form": form, "template": source.template, "may_for_all": may_for_all and tenant}
    return render(request, "gallery/publish.html", context)


@dataclass(frozen=True, slots=True)
class _Source:
    spec: JobSpec
    first: dict[str, Any]
    template: Template | None = None


def _publish_form(request: HttpRequest, source: _Source) -> PublishForm:
    if source.template is None:
        return PublishForm(request.POST or None, spec=source.spec, initial=source.first)
    uid = source.template.uid

    def stored() -> dict[str, Any]:
        return _next_version(selectors.get(uid, person(request))).first

    return PublishChangeForm(request.POST or None, spec=source.spec, stored=stored)


def _source(request: HttpRequest) -> _Source | None:
    """The job spec to publish; None if the address names nothing. Raises NotFound for what the person may not see."""
    user = person(request)
    try:
        uids = {name: UUID(request.GET[name]) for name in ("template", "preset", "job") if name in request.GET}
    except ValueError as error:
        raise NotFound(_("Unknown template.")) from error
    if "template" in uids:
        return _next_version(selectors.get(uids["template"], user))
    if "preset" in uids:
        preset = presets.get(uids["preset"], user)
        return _Source(presets.spec_of(preset), {"title": preset.name})
    if "job" in uids:
        job = jobs.get(uids["job"], user)
        return _Source(valid_spec(job), {"title": job.name})
    return None


def _next_version(template: Template) -> _Source:
    version = selectors.latest(template)
    spec = selectors.spec_of(version)
    first = PublishForm.first(selectors.open_fields(version), spec)
    return _Source(spec, first | {"title": template.title, "description": template.description}, template)


def _tenant(request: HttpRequest) -> Tenant | None:
    return current_tenant.tenant(request)
