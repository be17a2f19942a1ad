"""Sentences that stand one after the other."""

from collections.abc import Iterable

from django.utils.translation import get_language

FULL_WIDTH = "，。、；：！？）"


def together(sentences: Iterable[str]) -> str:
    """Those that say anything, as one paragraph in the reader's language: Chinese leaves no space between them."""
    space = "" if (get_language() or "").startswith("zh") else " "
    return space.join(filter(None, sentences))


def space_after(text: str) -> str:
    """What stands between this text and the next: nothing behind full-width punctuation, which is wide enough."""
    return "" if text.endswith(tuple(FULL_WIDTH)) else " "
