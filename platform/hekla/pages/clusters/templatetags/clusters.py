"""The tags of the buttons that cordon and drain a node."""

from django import template
from django.utils.safestring import SafeString

from hekla.apps.clusters.models import Node
from hekla.pages.clusters.cordon import cordon_form, drain_link

register = template.Library()


@register.simple_tag(takes_context=True)
def cordon_button(context: template.Context, node: Node) -> SafeString:
    """The button on the page of the node."""
    return cordon_form(node, "node", context.get("csrf_token"))


@register.simple_tag
def drain_button(node: Node) -> SafeString:
    """The link to its drain on the page of the node."""
    return SafeString(drain_link(node))
