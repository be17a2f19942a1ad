"""Checks of the query parameters that select rows."""

from collections.abc import Collection, Mapping, Sequence

from django.http import QueryDict
from django.utils.translation import gettext as _

from hekla.domain.errors import Invalid, Problem

_REPEATABLE = {"phase"}

Known = Mapping[str, Collection[str]]
"""Parameters with their values; any value if there are none."""


def require_effective(query: QueryDict, known: Known) -> None:
    """Raises Invalid for parameters that are unknown, empty, repeated, or have another value than the known ones.

    Filters ignore such parameters or a part of them, so an action on the rows that remain would change rows that nobody
    meant.
    """
    problems = [Problem(name, text) for name in sorted(query) if (text := _mistake(name, query.getlist(name), known))]
    if problems:
        raise Invalid(problems)


def _mistake(name: str, values: Sequence[str], known: Known) -> str:
    """Why this parameter does not do what it says; empty if it does."""
    if name not in known:
        return _("Unknown filter.")
    if not all(value.strip() for value in values):
        return _("Enter a value, or omit this filter.")
    if len(values) > 1 and name not in _REPEATABLE:
        return _("Give this filter once.")
    if known[name] and not set(values) <= set(known[name]):
        return _("Use one of: %(values)s. Or omit this filter.") % {"values": ", ".join(known[name])}
    return ""


def without_empty(query: QueryDict) -> QueryDict:
    """The query without empty values: a form without JavaScript also sends the fields that nobody filled in."""
    copy = query.copy()
    for name in query:
        copy.setlist(name, [value for value in query.getlist(name) if value])
    return copy
