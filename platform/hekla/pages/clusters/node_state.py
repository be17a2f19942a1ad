"""The state of a node as a word and as a badge."""

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hekla.apps.clusters.models import Node
from hekla.apps.job_history import labels
from hekla.pages.frame import html


def is_in_use(node: Node) -> bool:
    """Whether pods may start there."""
    return node.is_ready and not node.is_cordoned


def state_word(node: Node) -> str:
    """Ready, cordoned, or not ready."""
    return str(labels.phase(_phase(node))) if node.is_ready else _("not ready")


def state_badge(node: Node) -> SafeString:
    """The state as a badge."""
    if node.is_ready:
        return html.phase(_phase(node))
    return format_html('<span class="badge state-failed">{}{}</span>', html.icon("warning"), state_word(node))


def _phase(node: Node) -> str:
    """The phase of a node that is ready."""
    return "cordoned" if node.is_cordoned else "ready"
