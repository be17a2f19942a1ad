"""The button that cordons or uncordons a node, for its page and for the rows of the list."""

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hekla.apps.clusters.models import Node
from hekla.pages.frame import html
from hekla.pages.frame.row_actions import Button, Question, post_form


def cordon_form(node: Node, back: str, token: object) -> SafeString:
    """The button in its form. `back`: "node" returns to its page, "list" to the list; `token`: as of `post_form`."""
    address = html.address("clusters:cordon", node.pk)
    if node.is_cordoned:
        button = Button(_("Uncordon"), picture="play")
        return post_form(address, button, token, {"cordon": "no", "from": back})
    fate = _("No new pods start on %(name)s. Running pods continue.") % {"name": node.name}
    button, question = Button(_("Cordon"), picture="pause"), Question(fate, _("Cordon this node?"), _("Cordon"))
    return post_form(address, button, token, {"cordon": "yes", "from": back}, question)
