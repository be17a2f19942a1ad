"""Why a queue deserves what it deserves."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from hekla.apps.job_history import labels, quota_messages
from hekla.apps.queues import selectors as queues
from hekla.pages.frame.people import person
from hekla.pages.frame.selects import options
from hekla.simulation import share_derivation
from hekla.simulation.share_derivation import DivisionRow, RoundRow, ShareExplanation

_LENGTH = 253
_MOST_ROWS = 200


@dataclass(frozen=True, slots=True)
class DivisionView:
    """A row of the division in words. `page`: the name of the queue; empty if there is no page to open."""

    name: str
    page: str
    is_this: bool
    weight: int
    setting: str
    guarantee: str
    limit: str
    request: str
    allocated: str
    deserved: str


@require_safe
def show(request: HttpRequest, name: str) -> HttpResponse:
    """Show how the scheduler computes what the queue deserves of one resource."""
    user = person(request)
    queue = queues.get(name, user)
    resource = request.GET.get("resource", "").replace("\0", "")[:_LENGTH]
    found = share_derivation.explain_share(user, queue, resource)
    context = {"queue": queue, "found": found, **(_parts(found) if found else {})}
    return render(request, "queues/share.html", context)


def _parts(found: ShareExplanation) -> dict[str, object]:
    rows = found.rows[:_MOST_ROWS]
    return {
        "resources": options(((one, quota_messages.resource(one)) for one in found.resources), {found.resource}),
        "resource": quota_messages.resource(found.resource),
        "rows": [_row(row, found) for row in rows],
        "more_rows": len(found.rows) - len(rows),
        "rounds": [_round(one, found) for one in found.rounds],
        "total": _words(found.total, found),
        "has_weights": bool(found.rounds),
    }


def _row(row: DivisionRow, found: ShareExplanation) -> DivisionView:
    amounts = (row.setting, row.guarantee, row.limit, row.request, row.allocated, row.deserved)
    return DivisionView(
        row.name or share_derivation.hidden_queues(row),
        row.name,
        row.is_this,
        row.weight,
        *(_("no limit") if one is None else _words(one, found) for one in amounts),
    )


def _round(one: RoundRow, found: ShareExplanation) -> dict[str, object]:
    return {
        "number": one.number,
        "weight": f"{one.weight} / {one.weights:g}",
        "left": _words(one.left, found),
        "offered": _words(one.offered, found),
        "deserved": _words(one.deserved, found),
    }


def _words(amount: float, found: ShareExplanation) -> str:
    return labels.exact_amounts({found.resource: round(amount, -1)})
