"""What-if previews: beside the submission form, and on the page of a pending job."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from hekla.api.throttles import may_ask_what_if
from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.forecasts import selectors as forecasts
from hekla.apps.job_history import explanations, prospects
from hekla.apps.job_history.prospects import ClusterProspect
from hekla.apps.jobs import selectors, services
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services import Route
from hekla.apps.measures import job_costs
from hekla.apps.queues import selectors as queues
from hekla.apps.tenancy.models import Tenant
from hekla.domain import formats, spec_changes
from hekla.domain.errors import Forbidden, Invalid, NotFound, Problem, Refused
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.pages.frame import current_tenant
from hekla.pages.frame.people import person
from hekla.pages.job_forms.manifest_forms import MAX_MANIFEST_BYTES
from hekla.pages.job_forms.submission_form import InitialValues, SubmissionForm
from hekla.pages.submit.form_mapping import filled
from hekla.pages.submit.options import SubmissionOptions
from hekla.simulation import descriptions
from hekla.simulation import what_if as asking
from hekla.simulation.holders import MOST_NAMED
from hekla.simulation.what_if import NoForecast, StartVerdict, WhatIfResult

_DRAFT_NAME, _DRAFT_COMMAND = "draft", "true"
_STATES = {
    StartVerdict.NOW: ("done", "check"),
    StartVerdict.WAITS: ("waiting", "clock"),
    StartVerdict.NEVER: ("failed", "warning"),
}


@require_POST
def what_if(request: HttpRequest) -> HttpResponse:
    """Preview the submission of the current form. The page requests the expected start time separately, from `when`."""
    if not may_ask_what_if(person(request).pk):
        return render(request, "jobs/_what_if.html", {"remark": _("Too many previews. Retrying in a few seconds.")})
    tenant = _tenant(request)
    if _is_blank(request):
        remark = _("Enter or paste a manifest, or choose a file, to see a preview.")
        return render(request, "jobs/_what_if.html", {"remark": remark})
    try:
        spec, size = _swept(request, _spec(request, tenant))
        route = services.route_for(spec=spec, tenant=tenant, user=person(request), is_timed=False)
        answer = asking.predict_draft(spec, tenant=tenant, user=person(request), queue=route.queue, with_eta=False)
    except Forbidden as error:
        return render(request, "jobs/_what_if.html", {"remark": error.message}, status=403)
    except Refused as error:
        return render(request, "jobs/_what_if.html", _refusal(error))
    except Invalid as error:
        return render(request, "jobs/_what_if.html", {"remark": _remark(error)})
    state, icon = _STATES[answer.verdict]
    waits_somewhere = (
        route.federated is not None and answer.verdict is StartVerdict.WAITS
    )  # `when` shows where, and why
    context = {
        "state": state,
        "icon": icon,
        "head": descriptions.head(answer),
        "size": size,
        "prospects": [] if waits_somewhere else _prospects(route),
        "sentences": [] if waits_somewhere else descriptions.sentences(answer, clock.now()),
        "waits": answer.verdict is StartVerdict.WAITS,
        "starts": answer.verdict is StartVerdict.NOW,
        "more": answer.is_cut_short,
        "cost": job_costs.estimate(spec, queue=route.queue, owner_id=person(request).pk, now=clock.now()),
        **_suggestions(request, spec, answer),
    }
    return render(request, "jobs/_what_if.html", context)


@require_POST
def when(request: HttpRequest) -> HttpResponse:
    """Show the expected start time of the form's job, and suggestions if `what_if` had no time to try them."""
    tenant, user = _tenant(request), person(request)
    if not may_ask_what_if(user.pk):
        return HttpResponse("")
    try:
        spec, _size = _swept(request, _spec(request, tenant))
        route = services.route_for(spec=spec, tenant=tenant, user=user)
        answer = asking.predict_draft(
            spec, tenant=tenant, user=user, queue=route.queue, with_offers="suggestions" in request.GET
        )
    except Forbidden:
        return HttpResponse("", status=403)
    except (Invalid, Refused):  # the form has changed, and the page requests a new preview
        return HttpResponse("")
    accuracy = forecasts.accuracy(route.queue.pk)
    context = {"sentences": descriptions.when(answer, clock.now(), accuracy), "tried": "suggestions" in request.GET}
    context["prospects"] = _prospects(route)
    return render(request, "jobs/_when.html", context | _suggestions(request, spec, answer))


def _prospects(route: Route) -> list[ClusterProspect]:
    """The prospects on each cluster, if the queue is a federated queue."""
    return prospects.describe_clusters(
        [one.as_data() for one in route.candidates], clock.now(), chosen=route.queue.cluster.name
    )


def _suggestions(request: HttpRequest, spec: JobSpec, answer: WhatIfResult) -> dict[str, Any]:
    """Suggestions that would help, and whether the form can apply them: applying one would lose the job's secrets."""
    return {
        "suggestions": descriptions.describe_suggestions(spec, answer.offers),
        "can_take": not _has_secrets(request),
    }


@require_POST
def take(request: HttpRequest) -> JsonResponse:
    """The form fields that a suggestion changes, with their new values, as JSON."""
    tenant = _tenant(request)
    try:
        spec = _spec(request, tenant)
        changed = spec_changes.apply_changes(spec, spec_changes.parse(request.POST.get("change", "")))
    except Invalid as error:
        return JsonResponse({"detail": error.message}, status=400)
    if "text" in request.POST:
        return JsonResponse({"text": formats.dump_whole(changed)})
    return JsonResponse(_differences(filled(spec), filled(changed)))


@require_safe
def unblock(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Show what a pending job waits for, its expected start time, and changes that would start it now."""
    job = selectors.get(uid, person(request))
    if not explanations.is_waiting(job) or job.cluster.leads_jobs or not may_ask_what_if(person(request).pk):
        return HttpResponse("")
    answer = asking.predict_job(job, user=person(request))
    if answer.verdict is StartVerdict.NOW:
        return HttpResponse("")
    accuracy = forecasts.accuracy(job.queue_id)
    context = {
        "job": job,
        "sentences": descriptions.why_and_when(answer, clock.now(), accuracy),
        "named": _named(answer, person(request)),
        "suggestions": descriptions.describe_suggestions(spec_of(job), answer.offers),
        "may_act": selectors.may_act(person(request), job) and services.is_scalable(job),
    }
    return render(request, "jobs/_unblock.html", context)


def _named(answer: WhatIfResult, user: User) -> QuerySet[Job]:
    """The jobs that the sentences name because they are before this one, to open them and to know whom to ask."""
    before = (*answer.holders.known[:MOST_NAMED], *answer.admitted.known[:MOST_NAMED])
    return selectors.visible_to(user).filter(pk__in=[one.job for one in before]).order_by("name")


@require_POST
def ease(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Apply a suggestion to a pending job: scale it if only its size changes, else open the form of a changed copy."""
    job = selectors.get(uid, person(request))
    services.require_right(job, person(request))
    text = request.POST.get("change", "")
    wanted = spec_changes.parse(text)
    if not all(change.is_of_size for change in wanted):
        query = urlencode({"clone": str(job.uid), "with": text})
        return redirect(f"{reverse('jobs:submit')}?{query}")
    size = spec_changes.size_of(spec_changes.apply_changes(spec_of(job), wanted))
    services.scale(job, size, user=person(request), now=clock.now(), expected_revision=_revision(request))
    return redirect("jobs:detail", uid)


def _revision(request: HttpRequest) -> int | None:
    text = request.POST.get("revision", "")
    return int(text) if text.isdecimal() and len(text) < 10 else None  # noqa: PLR2004


def _tenant(request: HttpRequest) -> Tenant:
    tenant = current_tenant.tenant(request)
    if tenant is None:
        raise NotFound(_("You are not a member of a tenant. Ask a platform admin."))
    return tenant


def _spec(request: HttpRequest, tenant: Tenant) -> JobSpec:
    """The job in the form or manifest. Raises Invalid."""
    if "text" in request.POST:
        text = request.POST["text"]
        if len(text.encode(errors="replace")) > MAX_MANIFEST_BYTES:
            raise Invalid([Problem("", _("The manifest is larger than 1 MiB."))])
        return formats.load(text).spec
    environments = list(clusters.environments().values_list("name", flat=True))
    open_ones = [*map(str, queues.open_to(tenant)), *map(str, queues.federated_open_to(tenant))]
    names = [(name, name) for name in open_ones]
    spec = SubmissionForm(_filled(request.POST), InitialValues(), queues=names, environments=environments).spec()
    if spec is None:
        raise Invalid([Problem("", _("Fix the marked fields to see a preview."))])
    return spec


def _is_blank(request: HttpRequest) -> bool:
    """Whether the request comes from an empty manifest page."""
    return "text" in request.POST and not request.POST["text"].strip()


def _swept(request: HttpRequest, spec: JobSpec) -> tuple[JobSpec, int]:
    """The first job of the sweep, and the number of jobs; without a sweep the job itself, and 0. Raises Invalid."""
    beside = SubmissionOptions(request.POST, request.POST.get("shape", ""), person(request))
    if not beside.is_sweep:
        return spec, 0
    if not beside.is_valid():
        form = beside.parameters
        whole = [Problem("", str(text)) for text in form.non_field_errors()]
        raise Invalid([*whole, *(Problem(str(field.label), str(text)) for field in form for text in field.errors)])
    sweep = beside.sweep(spec)
    return sweep.points(1)[0].spec, sweep.size()


def _filled(data: QueryDict) -> QueryDict:
    """The data with placeholders for an empty name and commands, which do not affect scheduling."""
    copy = data.copy()
    for name in [key for key in copy if key == "name" or key.endswith("-command")]:
        if not copy.get(name, "").strip():
            copy[name] = _DRAFT_NAME if name == "name" else _DRAFT_COMMAND
    return copy


def _refusal(error: Refused) -> dict[str, Any]:
    """The preview of a job that is valid but would be refused, for example by a quota or a closed queue."""
    if isinstance(error, NoForecast):
        return {"remark": error.message}
    state, icon = _STATES[StartVerdict.NEVER]
    return {
        "state": state,
        "icon": icon,
        "head": _("Would be rejected"),
        "sentences": [error.message],
        "refused": True,
    }


def _remark(error: Invalid) -> str:
    if problem := next(iter(error.problems), None):
        return _(": ").join(filter(None, (problem.path, problem.message)))
    return error.message


def _has_secrets(request: HttpRequest) -> bool:
    """Whether the manifest is an OpenPAI job with secrets, which cannot be rewritten without losing their values."""
    return "text" in request.POST and bool(formats.load(request.POST["text"]).secrets)


def _differences(old: InitialValues, new: InitialValues) -> dict[str, Any]:
    """The changed fields of the form, by field name."""
    fields = {name: value for name, value in new.job.items() if value != old.job[name]}
    for place, (before, after) in enumerate(zip(old.tasks, new.tasks, strict=True)):
        fields |= {f"tasks-{place}-{name}": value for name, value in after.items() if value != before[name]}
    return {name: "" if value is None else value for name, value in fields.items()}
