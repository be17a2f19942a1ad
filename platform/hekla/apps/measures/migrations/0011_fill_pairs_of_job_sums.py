"""Adds up the days that exist: those of jobs by two facts, and those of starved queues.

The version before may write days of jobs without pairs meanwhile: those of two days are added up again. It may add
hours of starved queues: the next hour of their day adds them up, too.
"""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

_NARROW = ("kind", "size", "model")
_PAIRS = ", ".join(
    f"('{first}.{second}', {column} || '|' || {second})"
    for first, column, seconds in (
        ("queue", "queue_id", _NARROW),
        ("tenant", "tenant_id", _NARROW),
        ("kind", "kind", _NARROW[1:]),
        ("size", "size", _NARROW[2:]),
    )
    for second in seconds
)
_FILL = f"""
INSERT INTO measures_partjobsum (level, cluster_id, at, by, key, what, part, count, milliseconds)
SELECT level, cluster_id, at, fact.name, fact.value, what, part, sum(count), sum(milliseconds)
FROM measures_jobsum CROSS JOIN LATERAL (VALUES {_PAIRS}) AS fact (name, value)
WHERE level = 1440 GROUP BY level, cluster_id, at, fact.name, fact.value, what, part
ON CONFLICT DO NOTHING
"""  # noqa: S608  (names of our own)
_STARVED = """
INSERT INTO measures_starvedqueueday
    (at, cluster_id, resource, queue_id, other_id, milliseconds, first_at, last_at)
SELECT date_trunc('day', at, 'UTC') AS day, cluster_id, resource, queue_id, other_id,
    sum(milliseconds), min(first_at), max(last_at)
FROM measures_starvedqueuetime GROUP BY day, cluster_id, resource, queue_id, other_id
ON CONFLICT DO NOTHING
"""
_NEWEST = """
INSERT INTO measures_stalejobhour (cluster_id, at, since)
SELECT DISTINCT cluster_id, at, now() FROM measures_jobsum WHERE level = 60 AND at > now() - interval '2 days'
ON CONFLICT DO NOTHING
"""


def fill(_apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    with editor.connection.cursor() as cursor:
        cursor.execute(_STARVED)
        cursor.execute(_FILL)
        cursor.execute(_NEWEST)


class Migration(migrations.Migration):
    dependencies = [
        ("measures", "0010_starved_queues_by_day"),
    ]

    operations = [
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
