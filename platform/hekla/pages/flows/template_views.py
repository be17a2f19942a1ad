"""Pages of templates: the list, a new template, and one template with its actions."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hekla.apps.flows import selectors, services
from hekla.apps.flows.models import JobTemplate
from hekla.apps.forms import attach
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services as job_services
from hekla.domain import formats, yaml_text
from hekla.domain.errors import HeklaError, Invalid, Problem
from hekla.domain.formats import LoadedJob
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.pages.flows.forms import JobNameForm, TemplateChangeForm, TemplateForm
from hekla.pages.flows.tables import TemplatesTable
from hekla.pages.frame import current_tenant, downloads
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import OwnedFilter, listing
from hekla.pages.job_forms.manifest_forms import MAX_MANIFEST_BYTES


@require_safe
def templates(request: HttpRequest) -> HttpResponse:
    """List the templates that the person may see."""
    found = listing(request, TemplatesTable, selectors.templates(person(request)), OwnedFilter)
    return render(request, "flows/templates.html", {"templates": found})


@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Save a new template, from a manifest or an existing job."""
    tenant = current_tenant.tenant(request)
    if tenant is None:
        return render(request, "jobs/no_tenant.html")

    def save(spec: JobSpec) -> JobTemplate:
        return services.create_template(spec=spec, tenant=tenant, user=person(request), now=clock.now())

    build = partial(TemplateForm, initial={"text": _of_job(request)})
    return _form_page(request, _("New template"), build, save, {"tenant": tenant})


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Replace the job of a template."""
    template = selectors.template(uid, person(request))

    def save(spec: JobSpec) -> JobTemplate:
        return services.change_template(template, spec=spec, user=person(request), now=clock.now())

    def stored() -> dict[str, str]:
        return {"text": formats.dump_template(JobSpec.parse(selectors.template(uid, person(request)).spec))}

    title = _("Edit %(name)s") % {"name": template.name}
    build = partial(TemplateChangeForm, stored=stored)
    return _form_page(request, title, build, save, {"template": template})


def _form_page(
    request: HttpRequest,
    title: str,
    build: Callable[..., TemplateForm],
    save: Callable[[JobSpec], JobTemplate],
    more: dict[str, Any],
) -> HttpResponse:
    form = build(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        try:
            loaded = _job_in(form.cleaned_data["text"])
            with form.saving() if isinstance(form, TemplateChangeForm) else nullcontext():
                saved = save(loaded.spec)
        except HeklaError as error:
            form = build({**{name: form.data[name] for name in form.data}, "text": form.cleaned_data["text"]})
            form.is_valid()
            attach(form, error)
        else:
            for warning in loaded.warnings:
                messages.warning(request, warning)
            return redirect("flows:template", saved.uid)
    context = {"form": form, "title": title, "most_bytes": MAX_MANIFEST_BYTES, "draft": request.GET.get("job", "")}
    return render(request, "flows/template_form.html", context | more)


def _of_job(request: HttpRequest) -> str:
    """The template manifest of the job that the address names; empty if it names none."""
    try:
        uid = UUID(request.GET.get("job", ""))
    except ValueError:
        return ""
    return formats.dump_template(JobSpec.parse(jobs.get(uid, person(request)).spec))


def _job_in(text: str) -> LoadedJob:
    """The one job of a template manifest or job manifest. Raises Invalid."""
    if not formats.holds_flows(yaml_text.read(text)):
        return formats.load(text)
    loaded = formats.load_flow(text)
    if len(loaded.templates) != 1 or loaded.flow is not None:
        raise Invalid([Problem("", _("Enter one JobTemplate. You can start flows on the page Flows."))])
    return LoadedJob(loaded.templates[0], loaded.warnings)


@require_safe
def detail(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Show one template."""
    template = selectors.template(uid, person(request))
    form = JobNameForm(initial={"name": jobs.free_name(template.tenant, template.name)})
    return _page(request, template, form)


def _page(request: HttpRequest, template: JobTemplate, form: JobNameForm) -> HttpResponse:
    spec = JobSpec.parse(template.spec)
    context = {
        "template": template,
        "spec": spec,
        "form": form,
        "manifest": formats.dump_template(spec),
        "may_act": selectors.may_act(person(request), template),
    }
    return render(request, "flows/template.html", context)


@require_POST
def submit(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Submit a job from the template."""
    template = selectors.template(uid, person(request))
    form = JobNameForm(request.POST)
    if form.is_valid():
        try:
            spec = JobSpec.parse({**template.spec, "name": form.cleaned_data["name"]})
            made = job_services.submit(spec=spec, tenant=template.tenant, user=person(request), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            return redirect("jobs:detail", made.uid)
    return _page(request, template, form)


@require_POST
def delete(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Delete a template."""
    template = selectors.template(uid, person(request))
    services.delete_template(template, user=person(request), now=clock.now())
    messages.success(request, _("Deleted %s. Started flows are not affected.") % template)
    return redirect("flows:templates")


@require_safe
def manifest(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Download the template's manifest."""
    template = selectors.template(uid, person(request))
    return downloads.manifest(formats.dump_template(JobSpec.parse(template.spec)), template.name)
