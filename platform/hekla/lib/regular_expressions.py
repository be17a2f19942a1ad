"""Regular expressions of others, matched in linear time by RE2, whose syntax Go and Kubernetes use too."""

from collections.abc import Iterable

import re2

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 1 << 20  # bytes of a compiled expression, which bounds the time for each character
_MAX_LENGTH = 1000


class UnsupportedExpression(ValueError):
    """The expression is invalid or too large."""


def search_all(expression: str, names: Iterable[str]) -> frozenset[str]:
    """The names in which the expression occurs. Raises UnsupportedExpression."""
    if len(expression) > _MAX_LENGTH:
        raise UnsupportedExpression
    try:
        pattern = re2.compile(expression.encode(), _OPTIONS)
    except (re2.error, UnicodeEncodeError) as error:
        raise UnsupportedExpression from error
    return frozenset(name for name in names if pattern.search(name.encode()))
