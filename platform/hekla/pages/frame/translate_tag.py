"""The tag `translate` of Django's templates, which translates a constant text once for each language.

Pages have fifty such texts. Each looks up the catalogue through the filters and the variables of templates otherwise.
"""

from typing import Any

from django.template import Context
from django.template.base import Parser, Token, Variable
from django.templatetags.i18n import TranslateNode, do_translate, register
from django.utils.translation import get_language


class _ConstantNode(TranslateNode):
    """A constant text without filters, whose translation depends on nothing but the language."""

    def render(self, context: Context) -> str:
        known: dict[str | None, str] = self.__dict__.setdefault("known", {})
        language = get_language()
        if language not in known:
            known[language] = super().render(context)
        return known[language]


def _translate(parser: Parser, token: Token) -> TranslateNode:
    node: Any = do_translate(parser, token)
    text = node.filter_expression
    is_constant = isinstance(text.var, Variable) and text.var.literal is not None and not text.filters
    if is_constant and not (node.noop or node.asvar or node.message_context):
        node.__class__ = _ConstantNode
    return node  # type: ignore[no-any-return]


def replace_tag() -> None:
    """Let the templates that are compiled from now on use it, wherever they load Django's library `i18n`."""
    register.tag("translate", _translate)
    register.tag("trans", _translate)
