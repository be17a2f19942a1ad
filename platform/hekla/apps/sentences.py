"""Joins sentences."""

from collections.abc import Iterable

from django.utils.translation import get_language

FULL_WIDTH = "，。、；：！？）"


def together(sentences: Iterable[str]) -> str:
    """The non-empty sentences as one paragraph in the reader's language: Chinese has no spaces between them."""
    space = "" if (get_language() or "").startswith("zh") else " "
    return space.join(filter(None, sentences))


def space_after(text: str) -> str:
    """The space between this text and the next: none after full-width punctuation, which is wide enough."""
    return "" if text.endswith(tuple(FULL_WIDTH)) else " "
