"""Pages of jobs: the list, the submission, one job and what can be done with it."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hekla.apps import downloads
from hekla.apps.clusters import selectors as clusters
from hekla.apps.forms import attach
from hekla.apps.jobs import exports, gantt, podstory, presets, selectors, services, shown
from hekla.apps.jobs.filters import JobFilter
from hekla.apps.jobs.forms import MAX_MANIFEST_BYTES, LogSearchForm, ManifestForm
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.size_form import SizeForm
from hekla.apps.jobs.submission_form import First, SubmissionForm
from hekla.apps.outbox import selectors as outbox
from hekla.apps.people import person
from hekla.apps.queues import selectors as queues
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain import formats
from hekla.domain.errors import Forbidden, HeklaError, NotFound, Refused
from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import Action
from hekla.lib import clock


@require_safe
def jobs(request: HttpRequest) -> HttpResponse:
    """The jobs that one may see, narrowed and sorted by the address."""
    since = outbox.last_number()
    return render(request, "jobs/list.html", list_context(request) | {"since": since})


def list_context(request: HttpRequest) -> dict[str, Any]:
    """What the list shows for this address."""
    of_deleted = request.GET.get("deleted") == "yes"
    visible = selectors.deleted_for(person(request)) if of_deleted else selectors.visible_to(person(request))
    found = JobFilter(request.GET, queryset=visible, request=request)
    page = Paginator(found.qs, shown.PAGE).get_page(request.GET.get("page"))
    return {
        "page": page,
        "previous": _address(request, page.previous_page_number()) if page.has_previous() else "",
        "next": _address(request, page.next_page_number()) if page.has_next() else "",
        "rows": shown.rows(list(page.object_list)),
        "phases": shown.phases(selectors.phase_counts(visible), request.GET.getlist("phase")),
        "queues": list(queues.visible_to(person(request)).values_list("name", flat=True)),
        "kinds": selectors.kinds(visible),
        "sort": request.GET.get("sort", ""),
        "query": request.GET.urlencode(),
        "of_deleted": of_deleted,
        "is_filtered": bool(set(request.GET) - {"page", "sort", "deleted"}),
    }


def _address(request: HttpRequest, page: int) -> str:
    """The same list, another page of it."""
    query = request.GET.copy()
    query["page"] = str(page)
    return f"?{query.urlencode()}"


@require_safe
def detail(request: HttpRequest, uid: UUID) -> HttpResponse:
    """One job."""
    job = selectors.get(uid, person(request))
    is_theirs = selectors.may_act(person(request), job) and services.is_scalable(job)
    return _detail(request, job, SizeForm(job=job) if is_theirs else None)


def _detail(request: HttpRequest, job: Job, size: SizeForm | None) -> HttpResponse:
    since = outbox.last_number()
    context = shown.detail(job, person(request), request.GET) | gantt.chart(job, request.GET, now=clock.now())
    context |= {"since": since, "manifest": formats.dump(_spec(job)), "size": size, "query": _gantt_query(request)}
    context |= {"size_remarks": services.scaling_remarks(job) if size else ()}
    return render(request, "jobs/detail.html", context)


@require_safe
def timeline(request: HttpRequest, uid: UUID) -> HttpResponse:
    """The job's pods along the time, as they are now: the page asks again."""
    job = selectors.get(uid, person(request))
    context = gantt.chart(job, request.GET, now=clock.now())
    return render(request, "jobs/_gantt.html", context | {"job": job, "query": _gantt_query(request)})


@require_safe
def pod(request: HttpRequest, uid: UUID, pod_id: int) -> HttpResponse:
    """One attempt of a replica, with all that is known of it."""
    since = outbox.last_number()
    found = selectors.pod(pod_id, person(request))
    if found.job.uid != uid:
        raise NotFound(_("There is no such pod."))
    context = {"since": since, "search": LogSearchForm()}
    return render(request, "jobs/pod.html", podstory.page(found, now=clock.now()) | context)


def _gantt_query(request: HttpRequest) -> str:
    """What of the address narrows the picture, and nothing else."""
    kept = {name: request.GET[name] for name in ("task", "phase", "pods", "since") if name in request.GET}
    return urlencode(kept)


def _spec(job: Job) -> JobSpec:
    return JobSpec.parse(job.spec)


@require_POST
def command(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Abort, resume, restart."""
    job = selectors.get(uid, person(request))
    try:
        action = Action(request.POST.get("action", ""))
    except ValueError as error:
        raise Refused(_("There is no such action.")) from error
    services.command(job, action, user=person(request), now=clock.now())
    return redirect("jobs:detail", uid)


@require_POST
def scale(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Give the job another size; a refusal shows the page with what was typed."""
    job = selectors.get(uid, person(request))
    form = SizeForm(request.POST, job=job)
    if form.is_valid():
        try:
            seen = form.cleaned_data["revision"]
            job = services.scale(job, form.size(), user=person(request), now=clock.now(), seen=seen)
        except Forbidden:
            raise
        except HeklaError as error:
            form.show(error)
            form.look_again(job)
        else:
            for remark in services.scaling_remarks(job) if job.revision > seen else ():
                messages.warning(request, remark)
            return redirect("jobs:detail", uid)
    return _detail(request, job, form)


@require_POST
def delete(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Let a finished job go."""
    job = selectors.get(uid, person(request))
    services.delete(job, user=person(request), now=clock.now())
    messages.success(request, _("%s was deleted. Its logs and history stand under “Deleted”.") % job)
    return redirect("jobs:list")


@require_safe
def manifest(request: HttpRequest, uid: UUID) -> HttpResponse:
    """The job as a file, of the kind that `as` names; without it as the kind that holds every job whole."""
    job = selectors.get(uid, person(request))
    text = exports.text(_spec(job), request.GET.get("as", formats.FORMATS[0].word))
    return downloads.manifest(text, job.name)


@require_safe
def export(request: HttpRequest, uid: UUID) -> HttpResponse:
    """The kinds of manifests in which the job can be taken along, and what each loses."""
    job = selectors.get(uid, person(request))
    return render(request, "jobs/export.html", {"job": job, "offers": exports.offers(_spec(job))})


@require_http_methods(["GET", "POST"])
def submit(request: HttpRequest) -> HttpResponse:
    """The form."""
    tenant = _tenant(request)
    if tenant is None:
        return render(request, "jobs/no_tenant.html")
    if request.method == "POST":
        return _submit_form(request, tenant)
    source = _source(request)
    if source is not None and not presets.fits_form(source):
        return redirect(f"{reverse('jobs:submit_yaml')}?clone={request.GET['clone']}")
    first = presets.copy_of(source) if source else presets.preset(request.GET.get("preset", ""))
    first.job["name"] = selectors.free_name(tenant, source.name if source else "train")
    return _form_page(request, tenant, _form(None, first, tenant))


def _submit_form(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    form = _form(request.POST, First(), tenant)
    spec = form.spec()
    if spec is not None:
        try:
            made = services.submit(spec=spec, tenant=tenant, user=person(request), now=clock.now())
        except HeklaError as error:
            form.show(error)
        else:
            for remark in spec.remarks:
                messages.warning(request, remark)
            return redirect("jobs:detail", made.uid)
    return _form_page(request, tenant, form)


def _form(data: QueryDict | None, first: First, tenant: Tenant) -> SubmissionForm:
    environments = list(clusters.environments().values_list("name", flat=True))
    return SubmissionForm(data, first, queues=_queues(tenant), environments=environments)


def _form_page(request: HttpRequest, tenant: Tenant, form: SubmissionForm) -> HttpResponse:
    draft = request.GET.get("clone") or request.GET.get("preset", "single")
    context = {"tenant": tenant, "form": form.job, "tasks": form.tasks, "files": form.files, "draft": draft}
    return render(request, "jobs/submit.html", context)


@require_http_methods(["GET", "POST"])
def submit_yaml(request: HttpRequest) -> HttpResponse:
    """The manifest."""
    tenant = _tenant(request)
    if tenant is None:
        return render(request, "jobs/no_tenant.html")
    source = _source(request)
    text = formats.dump(_renamed(source, tenant)) if source else ""
    form = ManifestForm(request.POST or None, request.FILES or None, initial={"text": text})
    if request.method == "POST" and form.is_valid():
        try:
            loaded = formats.load(form.cleaned_data["text"])
            made = services.submit(
                spec=loaded.spec, tenant=tenant, user=person(request), now=clock.now(), secrets=loaded.secrets
            )
        except HeklaError as error:
            form = ManifestForm({"text": form.cleaned_data["text"]})
            form.is_valid()
            attach(form, error)
        else:
            for warning in loaded.warnings:
                messages.warning(request, warning)
            return redirect("jobs:detail", made.uid)
    context = {"tenant": tenant, "form": form, "most_bytes": MAX_MANIFEST_BYTES}
    return render(request, "jobs/submit_yaml.html", context)


def _renamed(spec: JobSpec, tenant: Tenant) -> JobSpec:
    return spec.model_copy(update={"name": selectors.free_name(tenant, spec.name)})


def _tenant(request: HttpRequest) -> Tenant | None:
    return tenancy.current(person(request), request.session.get("tenant", ""))


def _queues(tenant: Tenant) -> list[tuple[str, str]]:
    return [
        (queue.name, queue.name if queue.is_open else _("%s (closed)") % queue.name) for queue in queues.open_to(tenant)
    ]


def _source(request: HttpRequest) -> JobSpec | None:
    """The job to copy, where one is named."""
    try:
        uid = UUID(request.GET.get("clone", ""))
    except ValueError:
        return None
    return _spec(selectors.get(uid, person(request)))
