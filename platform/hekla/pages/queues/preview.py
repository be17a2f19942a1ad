"""A preview of how a change of a queue affects all shares, while the person types. Nothing is saved."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.roles import Permission
from hekla.apps.forms import attach
from hekla.apps.job_history import labels
from hekla.apps.queues import checks
from hekla.apps.queues import selectors as queues
from hekla.domain.errors import Invalid
from hekla.engine.queue_shares import QueueShares
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.queues.forms import QueueChangeForm, QueueForm
from hekla.scheduling import queue_check
from hekla.simulation import queue_descriptions, queue_shares
from hekla.simulation.queue_shares import ShareForecast

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class QueueShareChange:
    """A queue's share before and after, in words. `lost`: the number of pods that it would lose at once."""

    name: str
    is_this: bool
    held: str
    deserved: Pair
    bound: Pair
    share: Pair
    lost: int


@require_POST
def of_new(request: HttpRequest) -> HttpResponse:
    """Preview a new queue with the form's values."""
    accounts.require(person(request), Permission.MANAGE_QUEUES)
    return _render_preview(request, QueueForm(request.POST))


@require_POST
def of_change(request: HttpRequest, name: str) -> HttpResponse:
    """Preview the queue with the form's values."""
    accounts.require(person(request), Permission.MANAGE_QUEUES)
    return _render_preview(request, QueueChangeForm(request.POST, instance=queues.get(name, person(request))))


def _render_preview(request: HttpRequest, form: QueueForm) -> HttpResponse:
    forecast = _forecast(form) if form.is_valid() else None
    found = list(_rows(forecast, form.instance.name)) if forecast else []
    context: dict[str, object] = {"rows": found, "losses": forecast.losses if forecast else ()}
    if forecast:
        context |= {
            "warnings": [
                *queue_descriptions.over_commitments(forecast.over_commitments),
                *queue_check.warnings(form.instance),
            ],
            "effects": queue_descriptions.effects(forecast),
        }
    return render(request, "queues/_preview.html", context | _problems(form))


def _forecast(form: QueueForm) -> ShareForecast | None:
    """The forecast; None if the settings contradict each other, with the problems in the form."""
    queue, now = form.instance, clock.now()
    queue.created_at = queue.created_at or now
    try:
        checks.require(queue, allow_unknown_resources=form.cleaned_data["allow_unknown_resources"])
    except Invalid as error:
        attach(form, error)
        return None
    return queue_shares.forecast(queue)


def _problems(form: QueueForm) -> dict[str, object]:
    """The problems of each field. Empty fields have none yet."""
    wrong = {field.auto_id: list(field.errors) if field.data not in (None, "") else [] for field in form}
    elsewhere = list(form.non_field_errors())
    return {"problems": wrong, "elsewhere": elsewhere, "is_wrong": any([*wrong.values(), elsewhere])}


def _rows(forecast: ShareForecast, name: str) -> Iterator[QueueShareChange]:
    lost = Counter[str]()
    for loss in forecast.losses:
        lost[loss.job.queue.name] += loss.pods
    for other, after in forecast.after.items():
        yield _share_change(other, forecast.before, after, is_this=other == name, lost=lost[other])


def _share_change(
    name: str, before: Mapping[str, QueueShares], after: QueueShares, *, is_this: bool, lost: int
) -> QueueShareChange:
    was = before.get(name)
    limited = {*after.limit, *(was.limit if was else ())} - {"pods"}
    return QueueShareChange(
        name=name,
        is_this=is_this,
        held=labels.amounts(after.allocated),
        deserved=(labels.amounts(was.deserved) if was else _("new"), labels.amounts(after.deserved)),
        bound=(_limit(was, limited) if was else _("new"), _limit(after, limited)),
        share=(_percent(was) if was else _("new"), _percent(after)),
        lost=lost,
    )


def _limit(shares: QueueShares, names: Iterable[str]) -> str:
    """The limits of these resources, also those of 0; a dash without names."""
    limits = {name: shares.limit.amount(name) for name in names if name not in shares.unlimited}
    return labels.exact_amounts(limits) or "–"


def _percent(shares: QueueShares) -> str:
    """The used percentage of the deserved share; a dash if the queue uses nothing."""
    return f"{shares.share:.0%}" if shares.allocated else "–"
