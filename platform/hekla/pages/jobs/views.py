"""Pages of one job, and actions on it. `list_views` has the list, `hekla.pages.submit` the submission."""

from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from hekla.apps.event_log import selectors as event_log
from hekla.apps.job_history import gantt, pod_pages
from hekla.apps.jobs import selectors, services
from hekla.apps.jobs.clone import clone_job
from hekla.apps.jobs.facts import valid_spec
from hekla.apps.jobs.models import Job
from hekla.domain import formats
from hekla.domain.errors import Forbidden, HeklaError, NotFound, Refused
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock
from hekla.pages.frame import current_tenant, downloads
from hekla.pages.frame.people import person
from hekla.pages.job_forms.forms import LogSearchForm
from hekla.pages.jobs import context as shown
from hekla.pages.jobs import exports, pod_context, settings_tab, tabs
from hekla.pages.jobs.priority_form import PriorityForm
from hekla.pages.jobs.size_form import SizeForm


@require_safe
def detail(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Show one job."""
    since = event_log.last_number()
    return _detail(request, selectors.get(uid, person(request), current_tenant.rights(request)), since)


def _detail(
    request: HttpRequest, job: Job, since: int, *, size: SizeForm | None = None, priority: PriorityForm | None = None
) -> HttpResponse:
    """The page of a job. Refused forms keep their typed values.

    `since`: the number of the last event before the page reads any data. The page's socket then catches up with
    everything that happens while the page is rendered.
    """
    may = shown.JobRights.of(person(request), job, current_tenant.rights(request))
    tab = tabs.SETTINGS if size or priority else tabs.chosen(request.GET)
    context = {**shown.detail(job, request.GET, may, tab=tab), "since": since}
    if tab == tabs.PODS:
        context |= gantt.chart(
            job, request.GET, now=clock.now(), course=context["course"], pods=context["attempts"]
        ) | _pods_query(request)
    if tab == tabs.SETTINGS:
        context |= settings_tab.context(job, context["attempts"], may_act=may.act, size=size, priority=priority)
    return render(request, "jobs/detail.html", context)


@require_safe
def timeline(request: HttpRequest, uid: UUID) -> HttpResponse:
    """The current timeline of the job's pods. The page polls it."""
    job = selectors.get(uid, person(request))
    context = gantt.chart(job, request.GET, now=clock.now())
    return render(request, "jobs/_gantt.html", context | {"job": job} | _pods_query(request))


def _pods_query(request: HttpRequest) -> dict[str, str]:
    """The parameters that select the page of pods: `query`, and without the start of the timeline `pod_query`."""
    chosen = pod_pages.query_of(request.GET)
    without = {name: value for name, value in chosen.items() if name != "since"}
    return {"query": urlencode(chosen), "pod_query": urlencode(without)}


@require_safe
def pod(request: HttpRequest, uid: UUID, pod_id: int) -> HttpResponse:
    """Show one pod: an attempt of a replica."""
    since = event_log.last_number()
    found = selectors.pod(pod_id, person(request))
    if found.job.uid != uid:
        raise NotFound(_("Unknown pod."))
    context = {"since": since, "search": LogSearchForm()}
    may_act = selectors.may_act(person(request), found.job)
    return render(request, "jobs/pod.html", pod_context.page(found, may_act=may_act, now=clock.now()) | context)


@require_POST
def command(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Abort, resume or restart a job."""
    job = selectors.get(uid, person(request))
    try:
        action = LifecycleAction(request.POST.get("action", ""))
    except ValueError as error:
        raise Refused(_("Unknown action.")) from error
    services.command(job, action, user=person(request), now=clock.now())
    return redirect("jobs:detail", uid)


@require_POST
def retry(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Submit the finished job again, unchanged but for its name. One with secrets opens the form that asks for them."""
    user = person(request)
    job = selectors.get(uid, user)
    clone = clone_job(job, job.tenant)
    if clone.secrets:
        return redirect(f"{reverse('jobs:submit')}?{urlencode({'clone': str(uid)})}")
    again = services.submit(spec=clone.spec, tenant=job.tenant, user=user, now=clock.now())
    messages.success(request, _("Submitted %(new)s, which repeats %(old)s.") % {"new": again, "old": job})
    return redirect("jobs:detail", again.uid)


@require_POST
def scale(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Scale the job. A refusal shows the page with the typed values."""
    since = event_log.last_number()
    job = selectors.get(uid, person(request))
    form = SizeForm(request.POST, job=job)
    if form.is_valid():
        try:
            revision = form.cleaned_data["revision"]
            job = services.scale(job, form.size(), user=person(request), now=clock.now(), expected_revision=revision)
        except Forbidden:
            raise
        except HeklaError as error:
            form.show(error)
            form.look_again(job)
        else:
            for remark in services.scaling_remarks(job) if job.revision > revision else ():
                messages.warning(request, remark)
            return redirect("jobs:detail", uid)
    return _detail(request, job, since, size=form)


@require_POST
def priority(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Change the job's priority. A refusal shows the page with the typed values."""
    since = event_log.last_number()
    job = selectors.get(uid, person(request))
    form = PriorityForm(request.POST, job=job)
    if form.is_valid():
        requested, revision = form.cleaned_data["priority"], form.cleaned_data["revision"]
        try:
            services.set_priority(job, requested, user=person(request), now=clock.now(), expected_revision=revision)
        except Forbidden:
            raise
        except HeklaError as error:
            form.show(error, job)
        else:
            return redirect("jobs:detail", uid)
    return _detail(request, job, since, priority=form)


@require_POST
def delete(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Delete a finished job."""
    job = selectors.get(uid, person(request))
    services.delete(job, user=person(request), now=clock.now())
    messages.success(request, _("Deleted %s. Its logs and history are under “Deleted”.") % job)
    return redirect("jobs:list")


@require_safe
def manifest(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Download the job's manifest in the format `as`, by default the one that can hold every job."""
    job = selectors.get(uid, person(request))
    text = exports.text(valid_spec(job), request.GET.get("as", formats.FORMATS[0].word))
    return downloads.manifest(text, job.name)


@require_safe
def export(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Show the manifest formats for the job, and what each loses."""
    job = selectors.get(uid, person(request))
    return render(request, "jobs/export.html", {"job": job, "offers": exports.manifest_options(valid_spec(job))})
