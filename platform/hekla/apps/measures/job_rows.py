"""The rows of sums that a report of jobs reads: as few as have its filters and parts."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from django.db.models import QuerySet, Value
from django.db.models.functions import Left, StrIndex, Substr

from hekla.apps.measures.job_sums import ALL, OF_DAYS, PAIRS
from hekla.apps.measures.levels import DAY, HOUR, MINUTE, floor
from hekla.apps.measures.models import JobSum, PartJobSum

Stretch = tuple[timedelta, datetime, datetime]
"""A level of sums, and the begin and end of a time that is made of whole ones."""
COLUMNS = {"queue": "queue_id", "tenant": "tenant_id", "person": "owner_id", "cluster": "cluster_id"}
_COLUMNS_OF_PAIR, _LINE = ("first_fact", "second_fact"), "|"
_LATE = 2 * HOUR
"""For so long after its end, a day is read from its hours: its last hour may not be added up yet."""


@dataclass(frozen=True, slots=True)
class JobRows:
    """The sums that a report means. `filters`: by fact, the values that count."""

    clusters: Sequence[int]
    filters: Mapping[str, Sequence[Any]]

    def of(self, level: timedelta, by: str = "", keys: Collection[str] | None = None) -> tuple[QuerySet[Any], str]:
        """The sums of this level, and their column with the parts `by` (a fact, or cluster; empty: no parts).

        `keys`: only these parts; None: all.
        """
        filters: Mapping[str, Collection[Any]] = {**self.filters, **({by: keys} if keys is not None else {})}
        wanted = set(self.filters) | ({by} - {"", "cluster"})
        pair = next((one for one in PAIRS if level == DAY and wanted == set(one)), None)
        if pair is not None:
            column = _COLUMNS_OF_PAIR[pair.index(by)] if by in pair else COLUMNS.get(by, by)
            return self._of_pair(pair, filters), column
        if level == MINUTE or len(wanted) > 1 or (level == HOUR and not wanted.isdisjoint(OF_DAYS)):
            facts = {f"{COLUMNS.get(name, name)}__in": values for name, values in filters.items()}
            return self._in_clusters(JobSum, level).filter(**facts), COLUMNS.get(by, by)
        name = next(iter(wanted), ALL)
        rows = self._in_clusters(PartJobSum, level).filter(by=name)
        if name in filters:
            rows = rows.filter(key__in=[str(value) for value in filters[name]])
        return rows, "key" if by == name else COLUMNS.get(by, by)

    def _of_pair(self, pair: tuple[str, str], filters: Mapping[str, Collection[Any]]) -> QuerySet[Any]:
        """The days by two facts, with a column for each."""
        place = StrIndex("key", Value(_LINE))
        columns = Left("key", place - 1), Substr("key", place + 1)
        rows: QuerySet[Any] = self._in_clusters(PartJobSum, DAY).filter(by=".".join(pair))
        rows = rows.annotate(**dict(zip(_COLUMNS_OF_PAIR, columns, strict=True)))
        known = [filters[name] for name in pair if name in filters]
        if len(known) == len(pair):
            whole = [_LINE.join(map(str, values)) for values in product(*known)]
            rows = rows.filter(key__in=whole)  # by the primary key
        for name, column in zip(pair, _COLUMNS_OF_PAIR, strict=True):
            if name in filters and len(known) == 1:
                rows = rows.filter(**{f"{column}__in": [str(value) for value in filters[name]]})
        return rows

    def places(self, place: str) -> QuerySet[Any]:
        """The days of failures by node, image or exit code. They have no filters."""
        return self._in_clusters(PartJobSum, DAY).filter(by=place)

    def _in_clusters(self, table: Any, level: timedelta) -> QuerySet[Any]:  # noqa: ANN401  (both tables of sums)
        rows: QuerySet[Any] = table.objects.filter(cluster_id__in=self.clusters, level=level // MINUTE)
        return rows


def stretches(begin: datetime, end: datetime, longest: timedelta, *, now: datetime) -> list[Stretch]:
    """The same time in as few sums as possible, none longer than this: whole days that are over, and hours.

    Only if the longest sums are minutes, it is made of these.
    """
    if longest != DAY:
        return [(longest, begin, end)]
    found, at, over = list[Stretch](), begin, min(end, floor(now - _LATE, DAY))
    while at < end:
        level = DAY if at == floor(at, DAY) and at + DAY <= over else HOUR
        since = found.pop()[1] if found and found[-1][0] == level else at
        at += level
        found.append((level, since, at))
    return found
