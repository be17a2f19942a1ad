"""The activity of a session: each signal against its limit, what keeps the session, and what happens next."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from hekla.apps.accounts.roles import Permission
from hekla.apps.forms import attach
from hekla.apps.idleness import labels, selectors, services
from hekla.apps.idleness.selectors import SessionActivity
from hekla.apps.jobs import services as job_services
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.workbench import selectors as workbench
from hekla.apps.workbench.models import ToolSession
from hekla.domain.errors import Forbidden, HeklaError
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.idleness.forms import KeepForm
from hekla.pages.idleness.rows import signal_rows


def find(request: HttpRequest, uid: UUID) -> ToolSession:
    """The session, if the person may act on its job. Raises NotFound, Forbidden."""
    found = workbench.get(uid, person(request))
    job_services.require_right(found.pod.job, person(request))
    return found


@require_safe
def activity(request: HttpRequest, uid: UUID) -> HttpResponse:
    """What uses a session. The page itself asks for its part again."""
    return _page(request, find(request, uid))


@require_POST
def keep(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Keep a session for some hours, once. A refusal shows the typed values."""
    found = find(request, uid)
    form = KeepForm(request.POST)
    if form.is_valid():
        try:
            services.keep(found, **form.cleaned_data, user=person(request), now=clock.now())
        except Forbidden:
            raise
        except HeklaError as error:
            attach(form, error)
        else:
            return redirect("workbench:activity", uid)
    return _page(request, found, form)


def summary(session: ToolSession) -> SessionActivity:
    """What the page of a session says about its idleness."""
    return selectors.activity_of(session, now=clock.now())


def _page(request: HttpRequest, session: ToolSession, form: KeepForm | None = None) -> HttpResponse:
    now = clock.now()
    found = selectors.activity_of(session, now=now)
    since = max(now - selectors.window(found.rule), session.ready_at or session.created_at)
    context = {
        "session": session,
        "pod": session.pod,
        "job": session.pod.job,
        "activity": found,
        "reason": labels.reason(found.verdict) if found.verdict else "",
        "times": labels.times(found.rule) if found.rule else "",
        "rows": list(signal_rows(found, since, now)),
        "since": since,
        "form": form or KeepForm(),
        "may_set_rule": tenancy.may(person(request), session.pod.job.tenant_id, Permission.SET_IDLE_RULE),
    }
    is_part = request.headers.get("HX-Request") == "true"
    return render(request, "workbench/_activity.html" if is_part else "workbench/activity.html", context)
