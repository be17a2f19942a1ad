"""The pages of queues that need to know the jobs: the tree of all, and one as it stands."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.event_log import selectors as event_log
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.queues import selectors as queues
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.selectors import Rights
from hekla.pages.frame import current_tenant
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import listing, listing_of
from hekla.pages.jobs import columns, context
from hekla.pages.queues import figures
from hekla.pages.queues.tables import SEARCH, QueuesTable
from hekla.scheduling import occupancy
from hekla.scheduling.occupancy import Occupancy
from hekla.simulation import queue_shares
from hekla.simulation.queue_order import PlacesInQueue, line

_MOST = 25
"""So many jobs are shown of those that wait, and of the others; the list of jobs has them all."""


@require_safe
def show_all(request: HttpRequest) -> HttpResponse:
    """The queues that one may see as a tree, and what is in them."""
    user, whole = person(request), occupancy.now()
    found = listing(request, QueuesTable, _branches(user, whole), SEARCH, exclude=_exclude(user))
    return render(request, "queues/list.html", {"since": whole.number, "queues": found})


@require_safe
def show(request: HttpRequest, name: str) -> HttpResponse:
    """One queue, and its jobs in the order of their turns."""
    return render(request, "queues/detail.html", parts(name, person(request), current_tenant.rights(request)))


def all_parts(user: User, query: QueryDict) -> dict[str, Any]:
    """The live parts of the page of all queues."""
    branches = _branches(user, occupancy.now())
    return {"queues": listing_of(query, QueuesTable, branches, SEARCH, exclude=_exclude(user))}


def _branches(user: User, whole: Occupancy) -> list[figures.Branch]:
    return figures.as_tree(figures.queue_views(user, whole))


def _exclude(user: User) -> tuple[str, ...]:
    """The columns that are not for this person."""
    return () if accounts.may(user, Permission.MANAGE_QUEUES) else ("actions",)


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
