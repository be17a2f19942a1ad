"""The tag of the button that cordons a node."""

from django import template
from django.utils.safestring import SafeString

from hekla.apps.clusters.models import Node
from hekla.pages.clusters.cordon import cordon_form

register = template.Library()


@register.simple_tag(takes_context=True)
def cordon_button(context: template.Context, node: Node) -> SafeString:
    """The button on the page of the node."""
    return cordon_form(node, "node", context.get("csrf_token"))
