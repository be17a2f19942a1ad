"""The live view of the notification bell."""

from django.template.loader import render_to_string

from hekla.apps.accounts.models import User
from hekla.apps.notifications import selectors as notifications
from hekla.live.registry import LiveView, Params


def _bell_topics(user: User, _params: Params) -> frozenset[str]:
    return frozenset({f"bell:{user.pk}"})


def _bell(user: User, _params: Params) -> str:
    return render_to_string("notifications/_bell.html", {"unread": notifications.unread(user)})


VIEWS = {
    "bell": (LiveView(_bell_topics, _bell),),
}
