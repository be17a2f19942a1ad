"""The GPUs of a job against the idle rule: what keeps the job, and what happens next."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from hekla.apps.accounts.roles import Permission
from hekla.apps.forms import attach
from hekla.apps.idleness import job_selectors, job_services, labels
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.errors import Forbidden, HeklaError
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.idleness.forms import KeepForm
from hekla.pages.idleness.rows import signal_rows


@require_safe
def job(request: HttpRequest, uid: UUID) -> HttpResponse:
    """The use of a job's GPUs. The page itself asks for its part again."""
    return _page(request, jobs.get(uid, person(request)))


@require_POST
def keep(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Keep a job for some hours, once. A refusal shows the typed values."""
    found = jobs.get(uid, person(request))
    form = KeepForm(request.POST)
    if form.is_valid():
        try:
            job_services.keep(found, **form.cleaned_data, user=person(request), now=clock.now())
        except Forbidden:
            raise
        except HeklaError as error:
            attach(form, error)
        else:
            return redirect("idleness:job", uid)
    return _page(request, found, form)


def _page(request: HttpRequest, job: Job, form: KeepForm | None = None) -> HttpResponse:
    now = clock.now()
    found = job_selectors.activity_of(job, now=now)
    context = {
        "job": job,
        "activity": found,
        "reason": labels.reason(found.verdict) if found.verdict else "",
        "times": labels.times(found.rule) if found.rule else "",
        "rows": list(signal_rows(found, found.begin, now)),
        "since": found.begin,
        "form": form or KeepForm(),
        "may_keep": jobs.may_act(person(request), job),
        "may_set_rule": tenancy.may(person(request), job.tenant_id, Permission.SET_IDLE_RULE),
    }
    is_part = request.headers.get("HX-Request") == "true"
    return render(request, "idleness/_job.html" if is_part else "idleness/job.html", context)
