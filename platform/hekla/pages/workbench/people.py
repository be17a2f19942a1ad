"""Who has a session open: a part of its page and of the page that shares it, which loads itself again."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from hekla.apps.jobs import services as job_services
from hekla.apps.sharing import closing, presence, selectors
from hekla.apps.workbench.models import ToolSession
from hekla.domain.errors import Forbidden
from hekla.lib import clock
from hekla.pages.frame.people import person


@require_safe
def people(request: HttpRequest, uid: UUID) -> HttpResponse:
    """The part alone, for those who may act on the job, and for guests of the session.

    For whoever was a guest, it is closed with the reason, and loads itself no more.
    """
    found, user, now = selectors.session_of(uid, person(request)), person(request), clock.now()
    if not selectors.is_in(found, user, now=now):
        try:
            job_services.require_right(found.pod.job, user)
        except Forbidden:
            if not (reason := closing.reason_of_session(found, user, now=now)):
                raise
            return render(request, "workbench/_people.html", {"session": found, "closed": reason})
    return render(request, "workbench/_people.html", part(found))


def part(session: ToolSession) -> dict[str, Any]:
    """The context of `_people.html`. The caller has checked the same."""
    return {
        "session": session,
        "people": presence.users_of(session, now=clock.now()),
        "people_url": reverse("workbench:people", args=[session.uid]),
    }
