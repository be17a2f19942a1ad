"""The buttons that cordon, uncordon and drain a node, for its page and for the rows of the list."""

from functools import cache
from typing import NamedTuple

from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from hekla.apps.clusters.models import Node
from hekla.pages.frame import html
from hekla.pages.frame.row_actions import Button, Question, post_form


def cordon_form(node: Node, back: str, token: object) -> SafeString:
    """The button in its form. `back`: "node" returns to its page, "list" to the list; `token`: as of `post_form`."""
    address, words = html.address("clusters:cordon", node.pk), _words(get_language())
    if node.is_cordoned:
        button = Button(words.uncordon, picture="play")
        return post_form(address, button, token, {"cordon": "no", "from": back})
    button, question = (
        Button(words.cordon, picture="pause"),
        Question(words.fate % {"name": node.name}, words.question, words.cordon),
    )
    return post_form(address, button, token, {"cordon": "yes", "from": back}, question)


def drain_link(node: Node) -> str:
    """The link to the page that previews the drain of the node."""
    return Button(_words(get_language()).drain, picture="phase-draining").link(html.address("clusters:drain", node.pk))


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
