"""The buttons that cordon, uncordon and drain a node, for its page and for the rows of the list."""

from functools import cache, lru_cache
from typing import NamedTuple

from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from hekla.apps.clusters.models import Node
from hekla.pages.frame import html
from hekla.pages.frame.html import text
from hekla.pages.frame.row_actions import Button, Question, post_form

TOKEN = SafeString("<token>")
"""Stands for the token in a form. Nothing else in it is this, since all texts are escaped."""


def cordon_form(node: Node, back: str, token: object) -> SafeString:
    """The button in its form. `back`: "node" returns to its page, "list" to the list; `token`: as of `post_form`."""
    key = node.pk, node.name, node.is_cordoned, back, get_language()
    return SafeString(_form(*key).replace(TOKEN, text(token))) if token else _form(*key, has_token=False)


@lru_cache(maxsize=8192)
def _form(
    pk: int, name: str, is_cordoned: bool, back: str, language: str | None, *, has_token: bool = True
) -> SafeString:
    """Cached, with a mark in place of the token: a list has the forms of fifty nodes."""
    address, words, token = html.address("clusters:cordon", pk), _words(language), TOKEN if has_token else ""
    if is_cordoned:
        button = Button(words.uncordon, picture="play")
        return post_form(address, button, token, {"cordon": "no", "from": back})
    button, question = (
        Button(words.cordon, picture="pause"),
        Question(words.fate % {"name": name}, words.question, words.cordon),
    )
    return post_form(address, button, token, {"cordon": "yes", "from": back}, question)


def drain_link(node: Node) -> str:
    """The link to the page that previews the drain of the node."""
    return _link(node.pk, get_language())


@lru_cache(maxsize=8192)
def _link(pk: int, language: str | None) -> str:
    return Button(_words(language).drain, picture="phase-draining").link(html.address("clusters:drain", pk))


class _Words(NamedTuple):
    cordon: str
    uncordon: str
    question: str
    fate: str
    drain: str


@cache
def _words(_language: str | None) -> _Words:
    """The words of the forms in the language in force, translated once for all rows of all lists."""
    fate = _("No new pods start on %(name)s. Running pods continue.")
    return _Words(_("Cordon"), _("Uncordon"), _("Cordon this node?"), fate, _("Drain…"))
