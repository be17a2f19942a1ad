"""Cells of lists that show how much of a resource is in use: the amounts, and a thin bar below them."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from django.utils.safestring import SafeString

from hekla.domain.card_resources import of_cards
from hekla.pages.frame import html
from hekla.pages.frame.html import text

if TYPE_CHECKING:
    from hekla.pages.queues.figures import UsageBar  # with the engine, which templates do not need


def usage_cell(bars: Iterable["UsageBar"]) -> SafeString:
    """The usage of these resources, one below the other; a dash if there are none."""
    return SafeString("".join(map(_cell, bars))) or html.NOTHING


@lru_cache(maxsize=4096)
def _cell(bar: "UsageBar") -> str:
    """Cached, since many nodes and queues use equal amounts."""
    amounts = (bar.capacity, bar.used, bar.borrowed, bar.lent, bar.guarantee, bar.deserved)
    drawn = html.queue_bar(*amounts, words=bar.sentence)
    return f'<div class="usage-cell"><span>{text(bar.words)}</span>{drawn}</div>'


def card_bars(bars: Sequence["UsageBar"]) -> list["UsageBar"]:
    """The bars of cards of every kind."""
    cards = _cards_among(tuple([bar.name for bar in bars]))
    return [bar for bar in bars if bar.name in cards]


@lru_cache(maxsize=1024)
def _cards_among(names: tuple[str, ...]) -> frozenset[str]:
    """Cached, since most nodes and queues have the same resources."""
    return frozenset(of_cards(names))


def bars_of(bars: Sequence["UsageBar"], name: str) -> list["UsageBar"]:
    """The bar of one resource, if it has one."""
    return [bar for bar in bars if bar.name == name]


def share(bars: Sequence["UsageBar"]) -> float:
    """The largest share of these resources that is in use; -1 if there are none. Lists sort by it."""
    return max((bar.used / bar.capacity for bar in bars), default=-1.0)
