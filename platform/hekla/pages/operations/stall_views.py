"""Running pods that make no progress, and the request to the owner of a job to look at it."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services
from hekla.apps.measures import stall_labels, stalls
from hekla.apps.measures.stalls import StalledPod
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.errors import Forbidden, Refused
from hekla.domain.stalls import ReminderCause, StallSign
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.frame.selects import options
from hekla.pages.operations import queries
from hekla.pages.operations.tabs import tabs

_CHOICES = (5, 15, 30, 60, 240)
_PAGES = {ReminderCause.STALLED: "operations:stalled", ReminderCause.UNUSED: "operations:waste"}


@dataclass(frozen=True, slots=True)
class StallRow:
    """A stalled pod as a row. `may_act`: the person may open a terminal in it."""

    found: StalledPod
    may_act: bool
    may_remind: bool
    has_terminal: bool

    @property
    def signs(self) -> list[tuple[str, str, StallSign]]:
        """Each sign with its figures, in words."""
        return [(str(stall_labels.SIGNS[one.sign]), stall_labels.sentence(one), one.sign) for one in self.found.stalls]


@require_safe
def stalled(request: HttpRequest) -> HttpResponse:
    """List the running pods that make no progress."""
    user, name = person(request), queries.name_of(request.GET, "cluster")
    minutes = _minutes(request.GET.get("minutes", ""))
    report = stalls.stalled(user, minutes=minutes, cluster=name, now=clock.now())
    context = {
        "tabs": tabs("operations:stalled"),
        "rows": _rows(report.rows, user),
        "report": report,
        "minutes": minutes,
        "silent_minutes": 2 * minutes,
        "most": stalls.MOST_ROWS,
        "clusters": options(((one.name, one.name) for one in clusters.all_clusters()), {name}),
        "choices": options(((str(one), _("%d minutes") % one) for one in _CHOICES), {str(minutes)}),
    }
    return render(request, "operations/stalled.html", context)


@require_safe
def of_job(request: HttpRequest, uid: UUID) -> HttpResponse:
    """A part of the page of a job: its pods that make no progress. It loads later."""
    user = person(request)
    job = jobs.get(uid, user)
    report = stalls.stalled_of(job, now=clock.now())
    return render(request, "operations/_stalled_of_job.html", {"job": job, "rows": _rows(report.rows, user)})


@require_POST
def remind(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Ask the owner of a job to look at it."""
    user = person(request)
    job = jobs.get(uid, user)
    cause = queries.choice(ReminderCause, request.POST.get("cause", ""), ReminderCause.STALLED)
    try:
        services.remind_owner(job, cause, user=user, now=clock.now())
    except Forbidden:
        raise
    except Refused as error:
        messages.error(request, error.message)
    else:
        messages.success(request, _("%s gets a notification.") % job.owner)
    return redirect(_PAGES[cause])


def _minutes(text: str) -> int:
    return int(text) if text in map(str, _CHOICES) else stalls.USUAL_MINUTES


def _rows(found: Iterable[StalledPod], user: User) -> list[StallRow]:
    may_act = jobs.action_predicate(user, tenancy.rights(user))
    return [
        StallRow(one, may_act(job), services.may_remind(user, job), not job.is_external)
        for one in found
        for job in (one.pod.job,)
    ]
