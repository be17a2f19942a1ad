"""Texts of people in figures."""

from html import escape

from hekla.lib.text import truncate

_MOST_NAME = 60


def plain(words: str) -> str:
    """Text that Plotly shows as it is: it reads tags, and people name their parameters."""
    return escape(truncate(words, _MOST_NAME), quote=False)
