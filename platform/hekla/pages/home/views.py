"""The home page."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe
from django.views.i18n import set_language

from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters import notices
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.selectors import Rights
from hekla.domain.errors import Refused
from hekla.domain.phases import JobPhase
from hekla.lib import clock
from hekla.pages.frame import current_tenant
from hekla.pages.frame.people import person
from hekla.pages.home import examples
from hekla.pages.home.resources import home_free
from hekla.pages.jobs import columns
from hekla.pages.jobs import context as shown
from hekla.pages.queues import figures
from hekla.scheduling import occupancy

set_language_for_all = login_not_required(require_POST(set_language))
_MINE = 6
_QUEUES = 8


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Show the home page."""
    parts = home_parts(person(request), current_tenant.rights(request))  # first, for the number of the last event
    context = {"examples": examples.names(), "digits": "digits" in examples.names(), "notices": notices.everywhere()}
    return render(request, "home.html", parts | context)


def home_parts(user: User, rights: Rights | None = None) -> dict[str, Any]:
    """The live parts of the home page. `rights`: the person's rights, if already read."""
    whole = occupancy.now()
    views = figures.queue_views(user, whole, rights)
    return {"since": whole.number} | home_jobs(user, rights) | home_queues(views) | home_free(views, whole)


def home_jobs(user: User, rights: Rights | None = None) -> dict[str, Any]:
    """The person's own jobs."""
    rights = rights or tenancy.rights(user)
    mine = jobs.visible_to(user, rights).filter(owner=user)
    counts = jobs.phase_counts(mine)
    return {
        "may_submit": bool(rights.where(Permission.SUBMIT_JOBS)),
        "rows": shown.rows(_first(mine, counts)),
        "columns": columns.short(),
        "counts": {phase: shown.counted(count) for phase, count in counts.items()},
    }


def _first(mine: QuerySet[Job], counts: Mapping[str, int]) -> list[Job]:
    """The newest unfinished jobs, then the newest of the others. `counts`: of all of them, by phase."""
    open_phases = [phase for phase in counts if not JobPhase(phase).is_final]
    rows = jobs.newest(mine.filter(phase__in=open_phases), _MINE) if open_phases else []
    if len(rows) < min(_MINE, sum(counts.values())):
        known = {job.pk for job in rows}
        rows += [job for job in jobs.newest(mine, _MINE) if job.pk not in known][: _MINE - len(rows)]
    return rows


def home_queues(views: Sequence[figures.QueueView]) -> dict[str, Any]:
    """The busiest of the queues that the person may see."""
    return {"queues": _busiest(views)}


def _busiest(views: Sequence[figures.QueueView]) -> list[figures.QueueView]:
    """The queues with the most jobs, at most as many as the home page has room for."""
    real = [view for view in views if not figures.is_of_demonstration(view.queue.cluster)]
    return sorted(real, key=lambda view: -(view.use.running + view.use.waiting))[:_QUEUES]


@require_POST
def run_example(request: HttpRequest, name: str) -> HttpResponse:
    """Submit an example job for the current tenant."""
    tenant = current_tenant.tenant(request)
    if tenant is None:
        raise Refused(_("You are not a member of a tenant. Ask a platform admin."))
    job = examples.run(name, tenant=tenant, user=person(request), now=clock.now())
    return redirect("jobs:detail", job.uid)


@login_not_required
@require_safe
def favicon(_request: HttpRequest) -> HttpResponse:
    """The icon at the fixed URL that browsers request regardless of the page."""
    return redirect(f"{settings.STATIC_URL}img/favicon.svg", permanent=True)
