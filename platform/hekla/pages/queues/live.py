"""The live views of queue pages."""

from django.template.loader import render_to_string

from hekla.apps.accounts.models import User
from hekla.apps.queues import selectors as queues
from hekla.live.registry import LiveView, Params
from hekla.pages.frame.context import flags
from hekla.pages.frame.tables import words_of
from hekla.pages.frame.topics import MACHINES, role_snapshot
from hekla.pages.queues import views as queue_pages

QUEUES = frozenset({"queues"})


def queues_topics(user: User, _params: Params) -> frozenset[str]:
    """All events in and about the queues that the person may see, and about nodes."""
    return QUEUES | MACHINES | {f"queue:{pk}" for pk in visible_queues(user, _params)}


def visible_queues(user: User, _params: Params) -> tuple[int, ...]:
    """The same audience for people who may see the same queues."""
    return tuple(queues.visible_to(user).order_by("pk").values_list("pk", flat=True))


def _queues_audience(user: User, params: Params) -> tuple[tuple[int, ...], bool]:
    return visible_queues(user, params), flags(user)["may_manage_queues"]


def _queue_topics(user: User, params: Params) -> frozenset[str]:
    return frozenset({f"queue:{queues.get(params.get('name', ''), user).pk}"})


def _queues(user: User, params: Params) -> str:
    return render_to_string("queues/_list.html", queue_pages.all_parts(user, words_of(params)))


def _queue(user: User, params: Params) -> str:
    return render_to_string("queues/_detail.html", queue_pages.parts(params.get("name", ""), user))


VIEWS = {
    "queues": (LiveView(queues_topics, _queues, _queues_audience, audience_topics=QUEUES),),
    "queue": (LiveView(_queue_topics, _queue, role_snapshot),),
}
