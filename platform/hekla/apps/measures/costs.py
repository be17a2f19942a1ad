"""Computes what held resources cost, for one hour of a cluster, and adds the hours up to days.

GPUs: the sums of GPU time of that hour, so both agree. CPU and memory: the requests of pods while they were bound. The
costs of an hour are deleted and written anew. Prices and rounding: see `domain.prices`.
"""

from collections import defaultdict
from datetime import datetime
from typing import Any

from django.db import connection

from hekla.apps.measures import sum_tables
from hekla.apps.measures.levels import DAY, HOUR, PARTS, to_ms
from hekla.apps.measures.models import HolderGpuTime
from hekla.apps.measures.sum_tables import MOST, StepAmounts, SumTable
from hekla.apps.prices.selectors import PriceHistory
from hekla.domain.gpu_time import HELD, GpuClass
from hekla.domain.prices import PricedResource, PriceRates, cost

_CLASSES = tuple(one.value for one in HELD)
_COLUMNS = ("held", *_CLASSES)
HOLDERS = SumTable("measures_holdercost", ("queue_id", "tenant_id", "owner_id", "kind", "resource", "model"), _COLUMNS)
_PARTS = SumTable("measures_partcost", ("by", "key", "resource", "model"), _COLUMNS)
_BY = {"all": "''", **{name: f"{column}::text" for name, column in PARTS.items()}}
_REQUESTS = """
    SELECT queue_id, tenant_id, owner_id, kind, outcome,
           sum(cpu * (ready - since)), sum(cpu * (until - ready)),
           sum(memory * (ready - since)), sum(memory * (until - ready))
    FROM measures_gpuholding,
         LATERAL (SELECT greatest(floor(extract(epoch FROM bound_at) * 1000)::bigint, %(begin)s) AS since,
                         least(floor(extract(epoch FROM finished_at) * 1000)::bigint, %(end)s) AS until) AS held,
         LATERAL (SELECT CASE WHEN ready_at IS NULL THEN until
                              ELSE least(greatest(floor(extract(epoch FROM ready_at) * 1000)::bigint, since), until)
                              END AS ready) AS gang
    WHERE cluster_id = %(cluster)s AND tstzrange(bound_at, finished_at) && tstzrange(%(first)s, %(last)s)
          AND until > since AND (cpu > 0 OR memory > 0)
    GROUP BY 1, 2, 3, 4, 5
"""
"""Amounts over milliseconds of requests: before the gang ran, and after. `least` ignores nulls."""
_Amounts = dict[tuple[Any, ...], dict[str, int]]
"""By holder, resource and model: the amounts by class."""


def write(cluster_id: int, hour: datetime, until: datetime) -> None:
    """Write the costs of a cluster in this hour up to `until`. Nothing without prices. `write_day` adds up hours."""
    rates = PriceHistory.read().at(hour)
    if rates is None:
        return
    courses = {key: _course(key, amounts, rates, hour) for key, amounts in _held(cluster_id, hour, until).items()}
    place = (60, hour, hour + HOUR)
    with connection.cursor() as cursor:
        sum_tables.delete(cursor, HOLDERS, cluster_id, place)
        sum_tables.copy(cursor, HOLDERS, (60, cluster_id), [hour], courses)
        _write_parts(cursor, cluster_id, place)


def write_day(cluster_id: int, day: datetime) -> None:
    """Write the costs of a cluster in this UTC day from those of its hours."""
    place = (1440, day, day + DAY)
    with connection.cursor() as cursor:
        sum_tables.add_up(cursor, HOLDERS, cluster_id, (*place, 60))
        _write_parts(cursor, cluster_id, place)


def _write_parts(cursor: Any, cluster_id: int, place: tuple[int, datetime, datetime]) -> None:  # noqa: ANN401
    """Write the costs by one fact, and those of the cluster, from those of holders."""
    sum_tables.delete(cursor, _PARTS, cluster_id, place)
    for name, key in _BY.items():
        sum_tables.derive(cursor, (HOLDERS, _PARTS), f"'{name}', {key}, resource, model", cluster_id, place)


def _held(cluster_id: int, hour: datetime, until: datetime) -> _Amounts:
    found: _Amounts = defaultdict(lambda: defaultdict(int))
    rows = HolderGpuTime.objects.filter(level=60, cluster_id=cluster_id, at=hour)
    for row in rows:
        key = (row.queue_id, row.tenant_id, row.owner_id, row.kind, PricedResource.GPU, row.model)
        found[key] = {name: getattr(row, name) for name in _CLASSES}
    facts: dict[str, Any] = {"cluster": cluster_id, "first": hour, "last": until}
    facts |= {"begin": to_ms(hour), "end": to_ms(until)}
    with connection.cursor() as cursor:
        cursor.execute(_REQUESTS, facts)
        for *holder, outcome, cpu_gang, cpu, memory_gang, memory in cursor:
            what = outcome or GpuClass.UNMEASURED.value
            for resource, gang, rest in (
                (PricedResource.CPU, cpu_gang, cpu),
                (PricedResource.MEMORY, memory_gang, memory),
            ):
                found[*holder, resource, ""][GpuClass.GANG.value] += int(gang)
                found[*holder, resource, ""][what] += int(rest)
    return found


def _course(key: tuple[Any, ...], amounts: dict[str, int], rates: PriceRates, hour: datetime) -> StepAmounts:
    """The columns of a row. Amounts of one class are rounded together, once."""
    queue, resource, model = key[0], key[-2], key[-1]
    rate = rates.rate(resource, queue, hour, model)
    costs = {name: [min(cost(resource, amount, rate), MOST)] for name, amount in amounts.items()}
    return {"held": [min(sum(amounts.values()), MOST)], **costs}
