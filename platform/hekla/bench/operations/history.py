"""Repeats the facts of one day for the days before, and lets the measures compute the sums: as for late data.

Amounts of queues are kept 8 days, and are never late. So their days are repeated from the oldest on, and each is added
up at its end.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType

from django.db import connection
from django.db.models import Model

from hekla.apps.measures import job_counting, queue_services
from hekla.apps.measures import services as measures
from hekla.apps.measures.models import (
    GpuCapacity,
    GpuHolding,
    JobMoment,
    MeasuredQueues,
    QueueShareSpan,
    StaleHour,
    StaleJobHour,
)
from hekla.apps.measures.queue_levels import LAG


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
    FactTable(JobMoment, {"at": _NEVER}, {"job_id": "job_id - %(days)s::bigint * 1000000000"}),
)
"""All facts of the measures that may be late. Those of other features join here."""
_SPANS = FactTable(QueueShareSpan, {"begin_at": _NEVER, "end_at": _END}, {"id": None})
_ENOUGH_SECONDS = 3600.0


def repeat(days: int, day: tuple[datetime, datetime], now: datetime, say: Callable[[str], None]) -> int:
    """Repeat the facts of the day with this begin and end, `days` times. Returns the hours that were computed.

    What is late by so many days marks hours in the same way; these are settled here without waiting.
    """
    for table in FACTS:
        for number in range(1, days + 1):
            _insert(table, number, day)
        say(f"{table.model._meta.db_table} has facts of {days + 1} days")
    measures.mark_all(now=now)
    job_counting.mark_job_hours(now=now)
    hours = 0
    for marked, work in ((StaleHour, measures.roll_up), (StaleJobHour, measures.count_jobs)):
        rows = marked._default_manager.filter(since__lte=now)  # an hour that goes on waits for its end
        whole = waiting = rows.count()
        while waiting:
            work(now=now, settle=timedelta(), most_seconds=30.0)
            waiting = rows.count()
            say(f"{whole - waiting:,} of {whole:,} hours of {marked._meta.db_table} are computed")
        hours += whole
    _repeat_queues(days, day)
    say("The sums of queues are computed")
    return hours


def _insert(table: FactTable, days: int, day: tuple[datetime, datetime]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_statement(table), {"days": days, "begin": day[0], "end": day[1]})


def _repeat_queues(days: int, day: tuple[datetime, datetime]) -> None:
    present = list(MeasuredQueues.objects.values_list("pk", "until", "due_at"))
    begin, end = day
    for number in range(days, 0, -1):
        _insert(_SPANS, number, day)
        first = begin - timedelta(days=number)
        MeasuredQueues.objects.update(until=first, due_at=first)
        queue_services.roll_up_queues(now=end - timedelta(days=number) + LAG, most_seconds=_ENOUGH_SECONDS)
    for pk, until, due_at in present:
        MeasuredQueues.objects.filter(pk=pk).update(until=until, due_at=due_at)


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
