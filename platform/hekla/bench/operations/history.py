"""Repeats the facts of one day for the days before, and lets the measures compute the sums: as for late data.

Samples of use are not repeated, so the GPU time of the earlier days is not measured instead of useful or idle.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType

from django.db import connection, transaction
from django.db.models import Model

from hekla.apps.measures import job_counting, queue_services
from hekla.apps.measures import services as measures
from hekla.apps.measures.levels import HOUR, floor
from hekla.apps.measures.models import (
    GpuCapacity,
    GpuHolding,
    JobMoment,
    MeasuredQueues,
    QueueShareSpan,
    StaleHour,
    StaleJobHour,
)
from hekla.apps.measures.queue_levels import KEEP_SPANS, LAG


@dataclass(frozen=True, slots=True)
class FactTable:
    """A table of facts. `times`: its columns with times, with what stands for each that goes on; the rest is copied.

    `keys`: the columns that must differ from those of the day, as SQL; None: the database numbers them.
    """

    model: type[Model]
    times: Mapping[str, str]
    keys: Mapping[str, str | None] = field(default_factory=lambda: MappingProxyType({}))


_OTHER_KEYS = 10**9
"""The distance of the keys of a day from those of the next one."""
_NEVER, _END = "NULL::timestamptz", "%(end)s::timestamptz"
FACTS = (
    FactTable(
        GpuHolding,
        {"bound_at": _NEVER, "ready_at": _NEVER, "finished_at": _END},
        {"pod_id": f"pod_id - %(days)s::bigint * {_OTHER_KEYS}"},
    ),
    FactTable(GpuCapacity, {"begin_at": _NEVER, "end_at": _END}, {"id": None}),
    FactTable(JobMoment, {"at": _NEVER}, {"job_id": f"job_id - %(days)s::bigint * {_OTHER_KEYS}"}),
)
"""All facts of the measures that may be late. Those of other features join here."""
_SPANS = FactTable(QueueShareSpan, {"begin_at": _NEVER, "end_at": _END}, {"id": None})
_ENOUGH_SECONDS = 3600.0


def repeat(days: int, day: tuple[datetime, datetime], now: datetime) -> int:
    """Repeat the facts of the day with this begin and end so many days earlier. Returns the hours that were computed.

    Days are repeated from the newest to the oldest. What is late by so many days marks hours in the same way; here they
    do not wait for further changes. A call that was interrupted is repeated.
    """
    with transaction.atomic():
        if not _is_repeated(days):
            for table in FACTS:
                _insert(table, days, day)
            begin, end = (at - timedelta(days=days) for at in day)
            measures.mark_all(now=now, before=end)
            job_counting.mark_job_hours(now=now, between=(begin, end))
            _repeat_queues(days, day)
    hours = 0
    for marked, work in ((StaleHour, measures.roll_up), (StaleJobHour, measures.count_jobs)):
        rows = marked._default_manager.filter(since__lte=now)  # an hour that goes on waits for its end
        hours += rows.count()
        while rows.exists():
            work(now=now, settle=timedelta(), most_seconds=30.0)
    return hours


def _is_repeated(days: int) -> bool:
    """Whether facts of that day are stored: their keys show it."""
    return GpuHolding.objects.filter(pod_id__lt=-(days - 1) * _OTHER_KEYS, pod_id__gte=-days * _OTHER_KEYS).exists()


def _insert(table: FactTable, days: int, day: tuple[datetime, datetime]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_statement(table), {"days": days, "begin": day[0], "end": day[1]})


def _repeat_queues(days: int, day: tuple[datetime, datetime]) -> None:
    """Amounts of queues are never late: they are added up at the end of their day. Old ones are deleted, as usual."""
    present = list(MeasuredQueues.objects.values_list("pk", "until", "due_at"))
    first, end = floor(day[0], HOUR) - timedelta(days=days), day[1] - timedelta(days=days)
    _insert(_SPANS, days, day)
    MeasuredQueues.objects.update(until=first, due_at=first)
    queue_services.roll_up_queues(now=end + LAG, most_seconds=_ENOUGH_SECONDS)
    for pk, until, due_at in present:
        MeasuredQueues.objects.filter(pk=pk).update(until=until, due_at=due_at)
    QueueShareSpan.objects.filter(end_at__lt=day[1] - KEEP_SPANS).delete()


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
    own = "".join(f" AND {name} > 0" for name, value in table.keys.items() if value is not None)  # not of repeated days
    return (
        f"INSERT INTO {table.model._meta.db_table} ({', '.join(values)})"  # noqa: S608  (names of our own)
        f" SELECT {', '.join(values.values())} FROM {table.model._meta.db_table}"
        f" WHERE {first} < %(end)s AND (coalesce({list(table.times)[-1]}, %(end)s) > %(begin)s){own}"
    )
