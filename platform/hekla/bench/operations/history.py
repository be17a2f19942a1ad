"""Repeats the facts of one day for the days before, and lets the measures compute the sums: as for late data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType

from django.db import connection
from django.db.models import Model

from hekla.apps.measures import services as measures
from hekla.apps.measures.models import GpuCapacity, GpuHolding, StaleHour


@dataclass(frozen=True, slots=True)
class FactTable:
    """A table of facts. `times`: its columns with times, with what stands for each that goes on; the rest is copied.

    `keys`: the columns that must differ from those of the day, as SQL; None: the database numbers them.
    """

    model: type[Model]
    times: Mapping[str, str]
    keys: Mapping[str, str | None] = field(default_factory=lambda: MappingProxyType({}))


_NEVER, _END = "NULL::timestamptz", "%(end)s::timestamptz"
FACTS = (
    FactTable(
        GpuHolding,
        {"bound_at": _NEVER, "ready_at": _NEVER, "finished_at": _END},
        {"pod_id": "pod_id - %(days)s::bigint * 1000000000"},
    ),
    FactTable(GpuCapacity, {"begin_at": _NEVER, "end_at": _END}, {"id": None}),
)
"""All facts of the measures. Those of other features join here."""


def repeat(days: int, day: tuple[datetime, datetime], now: datetime, say: Callable[[str], None]) -> int:
    """Repeat the facts of the day with this begin and end, `days` times. Returns the hours that were computed.

    What is late by so many days marks hours in the same way; these are settled here without waiting.
    """
    begin, end = day
    for table in FACTS:
        for number in range(1, days + 1):
            with connection.cursor() as cursor:
                cursor.execute(_statement(table), {"days": number, "begin": begin, "end": end})
        say(f"{table.model._meta.db_table} has facts of {days + 1} days")
    measures.mark_all(now=now)
    hours = waiting = StaleHour.objects.count()
    while waiting:
        measures.roll_up(now=now, settle=timedelta(), most_seconds=30.0)
        waiting = StaleHour.objects.count()
        say(f"{hours - waiting:,} of {hours:,} hours are computed")
    return hours


def _statement(table: FactTable) -> str:
    """Times are moved back, but stay within the day."""
    columns = [column.column for column in table.model._meta.concrete_fields if column.column]
    values = {name: name for name in columns}
    for name, default in table.times.items():
        bounds = "least(greatest({}, %(begin)s), %(end)s)".format(f"coalesce({name}, {default})")
        values[name] = (
            f"CASE WHEN coalesce({name}, {default}) IS NOT NULL THEN {bounds} - make_interval(days => %(days)s) END"
        )
    for name, value in table.keys.items():
        if value is None:
            del values[name]
        else:
            values[name] = value
    first = next(iter(table.times))
    return (
        f"INSERT INTO {table.model._meta.db_table} ({', '.join(values)})"  # noqa: S608  (names of our own)
        f" SELECT {', '.join(values.values())} FROM {table.model._meta.db_table}"
        f" WHERE {first} < %(end)s AND (coalesce({list(table.times)[-1]}, %(end)s) > %(begin)s)"
    )
