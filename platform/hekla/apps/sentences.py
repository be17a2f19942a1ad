"""Joins and translates sentences."""

import re
from collections.abc import Iterable

from django.utils.translation import get_language, gettext

FULL_WIDTH = "，。、；：！？）"

_SENTENCE_END = re.compile(r"(?<=\.) ")


def together(sentences: Iterable[str]) -> str:
    """The non-empty sentences as one paragraph in the reader's language: Chinese has no spaces between them."""
    space = "" if (get_language() or "").startswith("zh") else " "
    return space.join(filter(None, sentences))


def space_after(text: str) -> str:
    """The space between this text and the next: none after full-width punctuation, which is wide enough."""
    return "" if text.endswith(tuple(FULL_WIDTH)) else " "


def translated(text: str) -> str:
    """A text of several sentences, each translated if it is one of Hekla's own: those of servers stay as they are."""
    return " ".join(gettext(sentence) for sentence in _SENTENCE_END.split(text) if sentence)
