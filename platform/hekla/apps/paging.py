"""Cursor pagination of long lists: every page costs the same, and new rows do not shift the pages.

A cursor holds the sort value and the id of the row before the page; the id orders rows with equal values. It is part of
the URL, so it is untrusted input.
"""

import base64
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Self, TypeVar

from django.core.exceptions import EmptyResultSet, ValidationError
from django.db import connection
from django.db.models import Model, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.fields.tuple_lookups import Tuple, TupleGreaterThan, TupleLessThan
from django.utils.timezone import is_naive

_LONGEST = 500
_OF_EACH = "SELECT value, (SELECT count(*) FROM ({}) AS counted) FROM unnest(%s::text[]) AS wanted(value)"
_OF_ALL = "SELECT %s, count(*) FROM ({}) AS counted"
Counts = dict[str, int]
Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class Order:
    """The sort field, and whether the greatest values come first."""

    field: str
    descending: bool

    def of(self, rows: QuerySet[Any], *, backwards: bool = False) -> QuerySet[Any]:
        """The rows in this order, or in reverse if `backwards`."""
        sign = "-" if self.descending is not backwards else ""
        return rows.order_by(f"{sign}{self.field}", f"{sign}pk")


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position of a page: it begins after the row of this value and id, or ends before it if `backwards`."""

    backwards: bool
    value: Any
    pk: int

    @classmethod
    def read(cls, text: str, field: Any) -> Self | None:  # noqa: ANN401  (any field of a model)
        """The cursor in this text, or None if the text is not a valid cursor."""
        try:
            backwards, value, pk = json.loads(base64.urlsafe_b64decode(text[:_LONGEST].encode()))
            value = field.clean(value, None)
        except (ValueError, TypeError, OverflowError, RecursionError, ValidationError):
            return None
        is_storable = "\0" not in str(value) and not (isinstance(value, datetime) and is_naive(value))
        return cls(bool(backwards), value, pk) if isinstance(pk, int) and 0 < pk < 2**63 and is_storable else None

    def __str__(self) -> str:
        value = self.value.isoformat() if isinstance(self.value, datetime) else self.value
        return base64.urlsafe_b64encode(json.dumps([int(self.backwards), value, self.pk]).encode()).decode()

    def cut(self, rows: QuerySet[Any], order: Order) -> QuerySet[Any]:
        """The rows after the cursor, or before it if `backwards`."""
        compare = TupleLessThan if order.descending is not self.backwards else TupleGreaterThan
        return rows.filter(compare(Tuple(order.field, "pk"), (self.value, self.pk)))


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """One page of a list. `previous`, `next`: the cursors of the neighbouring pages, empty at the ends."""

    rows: Sequence[Row]
    previous: str
    next: str


def page(
    rows: QuerySet[Row],
    order: Order,
    cursor: str,
    size: int,
    *,
    read: Callable[[QuerySet[Row]], Sequence[Row]] = list,
) -> Page[Row]:
    """The page at this cursor, or the first page if the cursor is empty or invalid.

    `read`: reads the rows of the page.
    """
    at = Cursor.read(cursor, rows.model._meta.get_field(order.field)) if cursor else None
    backwards = at is not None and at.backwards
    wanted = order.of(at.cut(rows, order) if at else rows, backwards=backwards)
    found = list(read(wanted[: size + 1]))
    more, found = len(found) > size, found[:size]
    if backwards:
        found.reverse()
    if not found:
        return Page([], "", "")
    before, after = (more, True) if backwards else (at is not None, more)
    return Page(
        found,
        str(Cursor(True, getattr(found[0], order.field), found[0].pk)) if before else "",
        str(Cursor(False, getattr(found[-1], order.field), found[-1].pk)) if after else "",
    )


def counts_up_to(most: int, rows: QuerySet[Any], field: str, values: Sequence[str], **others: QuerySet[Any]) -> Counts:
    """The number of rows with each of these values of a field, and of each other queryset, in one query.

    Counting stops at `most` + 1, which means "more than `most`": counting a hundred thousand rows each time would take
    longer than the rest of the page. Zeros are left out.
    """
    parts, facts = list[str](), list[Any]()
    with suppress(EmptyResultSet):  # no rows are possible, for example for a person without tenants
        sql, params = _up_to(most, rows.filter(**{field: RawSQL("wanted.value", ())}))
        parts.append(_OF_EACH.format(sql))
        facts += [*params, list(values)]
    for name, other in others.items():
        with suppress(EmptyResultSet):
            sql, params = _up_to(most, other)
            parts.append(_OF_ALL.format(sql))
            facts += [name, *params]
    return _counted(" UNION ALL ".join(parts), facts) if parts else {}


def _up_to(most: int, rows: QuerySet[Any]) -> tuple[str, Sequence[Any]]:
    return rows.order_by().values("pk")[: most + 1].query.sql_with_params()


def _counted(sql: str, facts: Sequence[Any]) -> Counts:
    with connection.cursor() as cursor:
        cursor.execute(sql, facts)
        return {name: count for name, count in cursor.fetchall() if count}
