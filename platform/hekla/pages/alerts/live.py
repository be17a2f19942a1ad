"""The live views of alert pages."""

from django.template.loader import render_to_string

from hekla.apps.accounts.models import User
from hekla.apps.alerts import selectors
from hekla.live.registry import LiveView, Params
from hekla.pages.alerts import parts
from hekla.pages.frame.tables import words_of
from hekla.pages.frame.topics import uid_of


def _topics(_user: User, _params: Params) -> frozenset[str]:
    return frozenset({"alerts"})


def _rule_topics(user: User, params: Params) -> frozenset[str]:
    return frozenset({f"alert-rule:{selectors.get(uid_of(params), user).uid}"})


def _alerts(user: User, params: Params) -> str:
    return render_to_string("alerts/_list.html", parts.list_for(words_of(params), user))


def _alert(user: User, params: Params) -> str:
    rule = selectors.get(uid_of(params), user)
    return render_to_string("alerts/_live.html", parts.detail_of(rule, user))


VIEWS = {
    "alerts": (LiveView(_topics, _alerts),),
    "alert": (LiveView(_rule_topics, _alert),),
}
