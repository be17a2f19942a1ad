"""The tags `translate` and `blocktranslate` of Django's templates, translating a constant text once for each language.

Pages have fifty such texts. Each looks up the catalogue through the filters and the variables of templates otherwise.
"""

from typing import Any

from django.template import Context, Node
from django.template.base import Parser, Token, TokenType, Variable
from django.templatetags.i18n import BlockTranslateNode, TranslateNode, do_block_translate, do_translate, register
from django.utils.translation import get_language


class ConstantNode(TranslateNode):
    """A constant text without filters, whose translation depends on nothing but the language."""

    def render(self, context: Context) -> str:
        known: dict[str | None, str] = self.__dict__.setdefault("known", {})
        language = get_language()
        if language not in known:
            words = super().render(context)
            known[language] = context[self.asvar] if self.asvar else words
        if not self.asvar:
            return known[language]
        context[self.asvar] = known[language]
        return ""


class ConstantBlock(BlockTranslateNode):
    """A text without variables."""

    def render(self, context: Context, nested: bool = False) -> str:
        known: dict[str | None, str] = self.__dict__.setdefault("known", {})
        language = get_language()
        if language not in known:
            known[language] = super().render(context, nested=nested)
        return known[language]


def _translate(parser: Parser, token: Token) -> TranslateNode:
    node: Any = do_translate(parser, token)
    text = node.filter_expression
    is_constant = isinstance(text.var, Variable) and text.var.literal is not None and not text.filters
    if is_constant and not (node.noop or node.message_context):
        node.__class__ = ConstantNode
    return node  # type: ignore[no-any-return]


def _translate_block(parser: Parser, token: Token) -> Node:
    node: Any = do_block_translate(parser, token)
    is_constant = all(part.token_type == TokenType.TEXT for part in node.singular)
    if is_constant and not (node.plural or node.message_context or node.asvar):
        node.__class__ = ConstantBlock
    return node  # type: ignore[no-any-return]


def replace_tag() -> None:
    """Let the templates that are compiled from now on use them, wherever they load Django's library `i18n`."""
    register.tag("translate", _translate)
    register.tag("trans", _translate)
    register.tag("blocktranslate", _translate_block)
    register.tag("blocktrans", _translate_block)
