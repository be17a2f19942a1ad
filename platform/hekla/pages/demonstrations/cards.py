"""The cards of the list of demonstrations, built in Python because there are thirty of them with a form or two each."""

from collections.abc import Collection
from itertools import groupby
from typing import NamedTuple

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hekla.apps.demonstrations.catalogue import DEMONSTRATIONS
from hekla.apps.demonstrations.scenes import Demonstration, Topic
from hekla.apps.sentences import space_after
from hekla.pages.frame import html
from hekla.pages.frame.buttons import button
from hekla.pages.frame.html import text
from hekla.pages.frame.row_actions import hidden


class TopicCards(NamedTuple):
    """The cards of the demonstrations of a topic."""

    topic: Topic
    cards: SafeString


def by_topic(played: Collection[str], playing: Collection[str], token: str) -> list[TopicCards]:
    """All demonstrations. `played`, `playing`: the names of those with a run, and with one now; `token`: of forms."""
    return [
        TopicCards(topic, SafeString("".join(_card(one, played, playing, token) for one in found)))
        for topic, found in groupby(DEMONSTRATIONS, key=lambda one: one.topic)
    ]


def _card(one: Demonstration, played: Collection[str], playing: Collection[str], token: str) -> str:
    key, title = f"demonstration-{text(one.name)}", text(one.title)
    first, second = (text(str(words)) for words in one.story[:2])
    state = html.phase("running") if one.name in playing else ""
    what = f'<span class="hidden-text">: {title}</span>'
    forms = _form(one, f"{text(_('Start on the simulated cluster'))}{what}", "primary", token)
    if one.without:
        forms += _form(one, f"{text(_words_without(one))}{what}", "plain", token, one.without.name)
    link = ""
    if one.name in played:
        words = text(_("Watch") if one.name in playing else _("Last run"))
        link = f'<a href="{html.address("demonstrations:detail", one.name)}">{words}{what}</a>'
    return (
        f'<section class="card" id="{key}" aria-labelledby="{key}-title"><header class="card-head">'
        f'<h2 id="{key}-title">{title}</h2><div class="card-actions">{state}</div></header><div class="card-body">'
        f'<p>{first}{space_after(first)}{second}</p><div class="line">{forms}{link}</div></div></section>'
    )


def _form(one: Demonstration, words: str, kind: str, token: str, without: str = "") -> str:
    """The button that starts a run, as `c-post`."""
    fields = hidden("csrfmiddlewaretoken", token) + (hidden("without", without) if without else "")
    start = button(SafeString(words), "", kind=kind, icon="play", href="", submit="submit", small="", label="")
    place = html.address("demonstrations:start", one.name)
    return f'<form class="inline" method="post" action="{place}">{fields}{start}</form>'


def _words_without(one: Demonstration) -> str:
    assert one.without is not None  # noqa: S101  (the caller's condition)
    facts = {"name": one.without.name, "other": one.instead}
    if one.instead:
        return _("Start with %(other)s instead of %(name)s") % facts
    return _("Start without %(name)s") % facts
