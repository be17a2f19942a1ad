"""Normalised HTML: the line breaks of a template have no meaning."""

import re


def tidy(html: str) -> str:
    """The markup with one space for each gap, and none at the end of a tag."""
    return re.sub(r"\s+(/?>)", r"\1", re.sub(r"\s+", " ", html))
