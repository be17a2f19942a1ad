"""Pages of schedules."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hekla.apps.event_log import selectors as event_log
from hekla.apps.forms import attach
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.facts import valid_spec
from hekla.apps.schedules import overview, selectors, services
from hekla.apps.schedules.models import Schedule
from hekla.apps.tenancy.models import Tenant
from hekla.domain import formats
from hekla.domain.errors import Forbidden, HeklaError
from hekla.lib import clock
from hekla.pages.frame import current_tenant, downloads, time_zone
from hekla.pages.frame.people import person
from hekla.pages.job_forms.manifest_forms import MAX_MANIFEST_BYTES, ManifestForm
from hekla.pages.schedules import forms
from hekla.pages.schedules.tables import runs_on, schedules_on


@require_safe
def schedules(request: HttpRequest) -> HttpResponse:
    """List the schedules that the person may see."""
    since = event_log.last_number()
    return render(request, "schedules/list.html", {"since": since, "schedules": schedules_on(request, person(request))})


@require_safe
def detail(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Show one schedule."""
    since = event_log.last_number()
    schedule = selectors.get(uid, person(request))
    context = overview.detail(schedule, person(request), now=clock.now())
    context |= {"since": since, "runs": runs_on(request, schedule)}
    return render(request, "schedules/detail.html", context)


@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Add a schedule."""
    tenant = _tenant(request)
    if tenant is None:
        return render(request, "jobs/no_tenant.html")
    form = forms.ScheduleForm(request.POST or None, initial=_first(request))
    if request.method == "POST" and form.is_valid():
        try:
            made = services.create(spec=form.spec(), tenant=tenant, user=person(request), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            return _made(request, made, form.warnings)
    return _form_page(request, form, {"tenant": tenant, "title": _("New schedule"), "submit": _("Create")})


@require_http_methods(["GET", "POST"])
def create_yaml(request: HttpRequest) -> HttpResponse:
    """Add a schedule from a CronJob manifest."""
    tenant = _tenant(request)
    if tenant is None:
        return render(request, "jobs/no_tenant.html")
    form = ManifestForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        text = form.cleaned_data["text"]
        try:
            loaded = formats.load_schedule(text)
            made = services.create(spec=loaded.spec, tenant=tenant, user=person(request), now=clock.now())
        except HeklaError as error:
            form = ManifestForm({"text": text})
            form.is_valid()
            attach(form, error)
        else:
            return _made(request, made, loaded.warnings)
    form.fields["text"].help_text = _("A CronJob of Volcano (batch.volcano.sh/v1alpha1), at most 1 MiB.")
    context = {"tenant": tenant, "form": form, "most_bytes": MAX_MANIFEST_BYTES}
    return render(request, "schedules/create_yaml.html", context)


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Change a schedule."""
    schedule = selectors.get(uid, person(request))
    if not selectors.may_start(person(request), schedule):
        raise Forbidden(_("Only the owner of the schedule and tenant admins can do this."))

    def stored() -> dict[str, Any]:
        return forms.first_values(selectors.spec_of(selectors.get(uid, person(request))))

    form = forms.ScheduleChangeForm(request.POST or None, stored=stored, named=schedule.name)
    if request.method == "POST" and form.is_valid():
        try:
            with form.saving():
                services.change(schedule, form.spec(), user=person(request), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            return _made(request, schedule, form.warnings)
    context = {"schedule": schedule, "tenant": schedule.tenant, "title": schedule.name, "submit": _("Save")}
    return _form_page(request, form, context)


@require_POST
def suspend(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Suspend or resume the schedule."""
    suspended = request.POST.get("suspend") == "yes"
    schedule = selectors.get(uid, person(request))
    services.set_suspended(schedule, suspended=suspended, user=person(request), now=clock.now())
    return redirect("schedules:detail", uid)


@require_POST
def run(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Start a run now."""
    started = services.run_now(selectors.get(uid, person(request)), user=person(request), now=clock.now())
    messages.success(request, _("Submitted %s.") % started.job)
    return redirect("schedules:detail", uid)


@require_POST
def delete(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Delete the schedule."""
    schedule = selectors.get(uid, person(request))
    services.delete(schedule, user=person(request), now=clock.now())
    messages.success(request, _("Deleted schedule %s. Its jobs stay.") % schedule)
    return redirect("schedules:list")


@require_safe
def manifest(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Download the schedule as a CronJob manifest."""
    schedule = selectors.get(uid, person(request))
    return downloads.manifest(formats.dump_schedule(selectors.spec_of(schedule)), schedule.name)


def _tenant(request: HttpRequest) -> Tenant | None:
    return current_tenant.tenant(request)


def _first(request: HttpRequest) -> dict[str, Any]:
    """Initial values of the form: the job to repeat, if the address names one."""
    try:
        uid = UUID(request.GET.get("job", ""))
    except ValueError:
        return {}
    return forms.first_job(valid_spec(jobs.get(uid, person(request))))


def _form_page(request: HttpRequest, form: forms.ScheduleForm, context: dict[str, Any]) -> HttpResponse:
    schedule = context.get("schedule")
    cancel = reverse("schedules:detail", args=[schedule.uid]) if schedule else reverse("schedules:list")
    more = {"form": form, "time_zones": time_zone.names(), "cancel": cancel, "most_bytes": MAX_MANIFEST_BYTES}
    return render(request, "schedules/form.html", context | more)


def _made(request: HttpRequest, schedule: Schedule, warnings: tuple[str, ...]) -> HttpResponse:
    for warning in warnings:
        messages.warning(request, warning)
    return redirect("schedules:detail", schedule.uid)
