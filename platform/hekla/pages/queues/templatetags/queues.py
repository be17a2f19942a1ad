"""The usage bars of queues and nodes in lists."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from django import template
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from hekla.pages.frame import html
from hekla.pages.queues.usage_cells import bars_of, card_bars, usage_cell

if TYPE_CHECKING:
    from hekla.pages.queues.figures import UsageBar  # with the engine, which templates do not need

register = template.Library()


@register.simple_tag
def bar_lines(bars: Iterable["UsageBar"]) -> SafeString:
    """The usage of each resource as text and a bar."""
    return format_html_join("", '<span class="muted number">{}</span>{}', ((bar.words, _drawn(bar)) for bar in bars))


@register.simple_tag
def main_usage(bars: Sequence["UsageBar"]) -> SafeString:
    """The usage of cards as a cell of a list; without cards, of CPUs."""
    return usage_cell(card_bars(bars) or bars_of(bars, "cpu"))


def _drawn(bar: "UsageBar") -> SafeString:
    parts = (bar.capacity, bar.used, bar.borrowed, bar.lent, bar.guarantee, bar.deserved)
    return html.queue_bar(*parts, words=bar.sentence)
