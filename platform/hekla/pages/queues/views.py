"""The pages of queues that show jobs: the tree of all queues, and one queue."""

from collections.abc import Sequence
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
from hekla.scheduling import occupancy, queue_check
from hekla.scheduling.card_model_usage import card_model_usage
from hekla.scheduling.occupancy import Occupancy
from hekla.simulation import queue_shares
from hekla.simulation.queue_order import QueuePositions, line

_MOST = 25
"""At most this many pending jobs and this many others are shown; the list of jobs has them all."""


@require_safe
def show_all(request: HttpRequest) -> HttpResponse:
    """List the queues that the person may see as a tree, with their usage."""
    user, whole = person(request), occupancy.now()
    branches, apart = _branches(user, whole, request.GET, current_tenant.rights(request))
    found = listing(request, QueuesTable, branches, SEARCH, exclude=_exclude(user, branches))
    return render(request, "queues/list.html", {"since": whole.number, "queues": found, "apart": apart})


@require_safe
def show(request: HttpRequest, name: str) -> HttpResponse:
    """Show one queue, and its jobs in scheduling order."""
    return render(request, "queues/detail.html", parts(name, person(request), current_tenant.rights(request)))


def all_parts(user: User, query: QueryDict) -> dict[str, Any]:
    """The live parts of the list of queues."""
    branches, apart = _branches(user, occupancy.now(), query)
    found = listing_of(query, QueuesTable, branches, SEARCH, exclude=_exclude(user, branches))
    return {"queues": found, "apart": apart}


def _branches(
    user: User, whole: Occupancy, query: QueryDict, rights: Rights | None = None
) -> tuple[list[figures.Branch], int]:
    """The tree, and how many queues of demonstrations are left out."""
    every = figures.queue_views(user, whole, rights)
    has_all = query.get("demonstrations") == "yes"
    views = [view for view in every if has_all or not figures.is_of_demonstration(view.queue.cluster)]
    return figures.as_tree(views), len(every) - len(views)


def _exclude(user: User, branches: Sequence[figures.Branch]) -> tuple[str, ...]:
    """The columns that this person does not see, or that have no values."""
    hidden = [] if accounts.may(user, Permission.MANAGE_QUEUES) else ["actions"]
    if all(branch.view.card_share < 0 for branch in branches):
        hidden.append("cards")
    return tuple(hidden)


def parts(name: str, user: User, rights: Rights | None = None) -> dict[str, Any]:
    """The live parts of a queue's page. `rights`: the person's rights, if already read. Raises NotFound."""
    since, rights = event_log.last_number(), rights or tenancy.rights(user)
    queue = queues.get(name, user, rights)
    here = queue_shares.present(queue, is_alone=True)
    cards = figures.card_bars(card_model_usage(here.snapshot.state, here.policy, queue))
    shares = here.shares.get(queue.name)
    found = line(here, queue, jobs.seeing(user, rights))
    waiting, others = _rows(found, jobs.visible_to(user, rights))
    return {
        "since": since,
        "queue": queue,
        "shares": shares,
        "bars": [*figures.share_bars(shares), *cards] if shares else [],
        "line": found,
        "columns": columns.short(),
        "waiting": waiting,
        "others": others,
        "tenants": queues.tenants_for(queue, user, rights),
        "settings": figures.settings(queue),
        "warnings": queue_check.warnings(queue, here.policy) if accounts.may(user, Permission.MANAGE_QUEUES) else [],
    }


def _rows(found: QueuePositions, known: QuerySet[Job]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The first rows of pending jobs, in scheduling order, and of other jobs, newest first."""
    first, rest = list(found.places)[:_MOST], found.others[::-1][:_MOST]
    visible = jobs.listed(known.filter(pk__in=[*first, *rest]).order_by())
    rows = {row["job"].pk: row for row in context.rows(visible)}
    waiting = [{**rows[pk], "turn": found.places[pk]} for pk in first if pk in rows]
    return waiting, [rows[pk] for pk in rest if pk in rows]
