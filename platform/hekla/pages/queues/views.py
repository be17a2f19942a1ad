"""The pages of queues that need to know the jobs: the tree of all, and one as it stands."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hekla.apps.accounts.models import User
from hekla.apps.event_log import selectors as event_log
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.queues import selectors as queues
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.selectors import Rights
from hekla.pages.frame import current_tenant
from hekla.pages.frame.people import person
from hekla.pages.jobs import columns, context
from hekla.pages.queues import figures
from hekla.scheduling import occupancy
from hekla.simulation import queue_shares
from hekla.simulation.queue_order import PlacesInQueue, line

_MOST = 25
"""So many jobs are shown of those that wait, and of the others; the list of jobs has them all."""


@require_safe
def show_all(request: HttpRequest) -> HttpResponse:
    """The queues that one may see as a tree, and what is in them."""
    return render(request, "queues/list.html", all_parts(person(request)))


@require_safe
def show(request: HttpRequest, name: str) -> HttpResponse:
    """One queue, and its jobs in the order of their turns."""
    return render(request, "queues/detail.html", parts(name, person(request), current_tenant.rights(request)))


def all_parts(user: User) -> dict[str, Any]:
    """The live parts of the page of all queues."""
    whole = occupancy.now()
    return {"since": whole.number, "branches": figures.as_tree(figures.queue_views(user, whole))}


def parts(name: str, user: User, rights: Rights | None = None) -> dict[str, Any]:
    """The live parts of a queue's page. `rights`: where they were read already. Raises NotFound."""
    since, rights = event_log.last_number(), rights or tenancy.rights(user)
    queue = queues.get(name, user, rights)
    here = queue_shares.present(queue)
    standing, found = here.standings.get(queue.name), line(here, queue, jobs.seeing(user, rights))
    waiting, others = _rows(found, jobs.visible_to(user, rights))
    return {
        "since": since,
        "queue": queue,
        "standing": standing,
        "bars": figures.share_bars(standing) if standing else [],
        "line": found,
        "columns": columns.short(),
        "waiting": waiting,
        "others": others,
        "tenants": queues.tenants_for(queue, user, rights),
    }


def _rows(found: PlacesInQueue, known: QuerySet[Job]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The first rows of those that wait, in line, and of the others, the newest first."""
    first, rest = list(found.places)[:_MOST], found.others[::-1][:_MOST]
    rows = {row["job"].pk: row for row in context.rows(jobs.listed(known.filter(pk__in=[*first, *rest])))}
    waiting = [{**rows[pk], "turn": found.places[pk]} for pk in first if pk in rows]
    return waiting, [rows[pk] for pk in rest if pk in rows]
