"""The state of a node as a word and as a badge."""

from functools import cache

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from hekla.apps.clusters.models import Node
from hekla.apps.job_history import labels
from hekla.pages.frame import html


def is_in_use(node: Node) -> bool:
    """Whether pods may start there."""
    return node.is_ready and not node.is_cordoned


def state_word(node: Node) -> str:
    """Ready, cordoned, or not ready."""
    return word_of_state(node.is_ready, node.is_cordoned)


def word_of_state(is_ready: bool, is_cordoned: bool) -> str:
    """As `state_word`, for a node with these facts."""
    return _word(is_ready, is_cordoned, get_language())


@cache
def _word(is_ready: bool, is_cordoned: bool, _language: str | None) -> str:
    """Cached, since a search reads it of thousands of nodes."""
    return labels.phase(_phase(is_cordoned)) if is_ready else _("not ready")


def state_badge(node: Node) -> SafeString:
    """The state as a badge."""
    if node.is_ready:
        return html.phase(_phase(node.is_cordoned))
    return format_html('<span class="badge state-failed">{}{}</span>', html.icon("warning"), state_word(node))


def _phase(is_cordoned: bool) -> str:
    """The phase of a node that is ready."""
    return "cordoned" if is_cordoned else "ready"
