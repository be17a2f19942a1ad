"""The activity of a session: each signal against its limit, what keeps the session, and what happens next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
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
from hekla.domain.idleness import MINUTE, ActiveMinute, IdleRule, Signal, SignalEvidence
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.workbench.forms import KeepForm


@dataclass(frozen=True, slots=True)
class Mark:
    """A part of a row's chart, in per cent of its width. `kind`: active, or unknown."""

    begin: float
    width: float
    kind: str


@dataclass(frozen=True, slots=True)
class SignalRow:
    """A signal against its limit, in words and as a chart."""

    label: str
    marks: Sequence[Mark]
    limit: str
    most: str
    active_at: datetime | None


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
        "rows": list(_rows(found, since, now)),
        "since": since,
        "form": form or KeepForm(),
        "may_set_rule": tenancy.may(person(request), session.pod.job.tenant_id, Permission.SET_IDLE_RULE),
    }
    is_part = request.headers.get("HX-Request") == "true"
    return render(request, "workbench/_activity.html" if is_part else "workbench/activity.html", context)


def _rows(found: SessionActivity, since: datetime, now: datetime) -> Iterator[SignalRow]:
    rule = found.rule or IdleRule(timedelta(), timedelta(), {})
    evidence = {one.signal: one for one in found.verdict.evidence} if found.verdict else {}
    signals = [signal for signal in Signal if any(signal in minute.amounts for minute in found.minutes)]
    for signal in signals:
        limit = rule.limit(signal)
        about: SignalEvidence | None = evidence.get(signal)
        yield SignalRow(
            label=str(labels.SIGNALS[signal]),
            marks=list(_marks(found.minutes, signal, limit, since, now)),
            limit=_("does not count") if limit is None else labels.amount(signal, limit),
            most=labels.amount(signal, about.most if about else _most(found.minutes, signal)),
            active_at=about.active_at if about else None,
        )


def _most(minutes: Sequence[ActiveMinute], signal: Signal) -> float | None:
    return max((amount for one in minutes if (amount := one.amounts.get(signal)) is not None), default=None)


def _marks(
    minutes: Sequence[ActiveMinute], signal: Signal, limit: float | None, since: datetime, now: datetime
) -> Iterator[Mark]:
    """Stretches of active and of unknown minutes; neighbours are one mark."""
    whole = max((now - since) / MINUTE, 1.0)
    places = ((int((one.at - since) / MINUTE), _kind(one.amounts.get(signal), limit)) for one in minutes)
    numbered = ((place - number, kind, place) for number, (place, kind) in enumerate(places))
    for (_run, kind), group in groupby(numbered, key=lambda one: one[:2]):
        if kind:
            run = [place for _offset, _kind_of, place in group]
            begin = max(0.0, 100 * run[0] / whole)
            yield Mark(round(begin, 2), round(min(100.0 - begin, max(0.5, 100 * len(run) / whole)), 2), kind)


def _kind(amount: float | None, limit: float | None) -> str:
    if amount is None:
        return "unknown"
    return "active" if limit is not None and amount >= limit else ""
