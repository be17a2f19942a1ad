"""The button that cordons or uncordons a node, for its page and for the rows of the list."""

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from markupsafe import escape as text

from hekla.apps.clusters.models import Node
from hekla.pages.frame import html


def cordon_form(node: Node, back: str, token: object) -> SafeString:
    """The button in its form. `back`: "node" returns to its page, "list" to the list; `token`: against forgery."""
    if node.is_cordoned:
        value, picture, label, asks = "no", "play", text(_("Uncordon")), ""
    else:
        value, picture, label = "yes", "pause", text(_("Cordon"))
        fate = text(_("No new pods start on %(name)s. Running pods continue.") % {"name": node.name})
        title = text(_("Cordon this node?"))
        asks = f' data-confirm="{fate}" data-confirm-title="{title}" data-confirm-do="{label}"'
    facts = {"csrfmiddlewaretoken": token, "cordon": value, "from": back}
    pairs = ((name, text(fact)) for name, fact in facts.items() if fact)
    fields = "".join(f'<input type="hidden" name="{name}" value="{fact}">' for name, fact in pairs)
    button = f'<button class="button button-plain button-small" type="submit">{html.icon(picture)}<span>{label}</span>'
    address = html.address("clusters:cordon", node.pk)
    return SafeString(f'<form class="inline" method="post" action="{address}"{asks}>{fields}{button}</button></form>')
