"""The live views of schedule pages."""

from django.template.loader import render_to_string

from hekla.apps.accounts.models import User
from hekla.apps.schedules import overview as schedules_shown
from hekla.apps.schedules import selectors as schedules
from hekla.lib import clock
from hekla.live.registry import LiveView, Params
from hekla.pages.frame.tables import words_of
from hekla.pages.frame.topics import tenant_topics, uid_of
from hekla.pages.schedules.tables import runs_for, schedules_for


def _schedules(user: User, params: Params) -> str:
    return render_to_string("schedules/_list.html", {"schedules": schedules_for(words_of(params), user)})


def _schedule_topics(user: User, params: Params) -> frozenset[str]:
    """The schedule's own topic, and that of its tenant, which has the events of its jobs."""
    schedule = schedules.get(uid_of(params), user)
    return frozenset({f"schedule:{schedule.uid}", f"tenant:{schedule.tenant_id}"})


def _schedule(user: User, params: Params) -> str:
    schedule = schedules.get(uid_of(params), user)
    context = schedules_shown.detail(schedule, user, now=clock.now())
    return render_to_string("schedules/_live.html", context | {"runs": runs_for(words_of(params), schedule)})


VIEWS = {
    "schedules": (LiveView(tenant_topics, _schedules),),
    "schedule": (LiveView(_schedule_topics, _schedule),),
}
