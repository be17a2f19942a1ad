"""Adds up the sums that exist. The version before may write others meanwhile: those of two days are added up again."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

_HOURS = "('all', ''), ('queue', queue_id::text), ('size', size), ('kind', kind), ('model', model)"
_DAYS = f"{_HOURS}, ('tenant', tenant_id::text), ('person', owner_id::text)"
_PLACES = """
INSERT INTO measures_partjobsum (level, cluster_id, at, by, key, what, part, count, milliseconds)
SELECT 1440, cluster_id, date_trunc('day', at, 'UTC') AS day, place.name, place.value, what, part, count(*), 0
FROM measures_jobmoment
CROSS JOIN LATERAL (VALUES ('node', node), ('image', image), ('exit_code', exit_code::text)) AS place (name, value)
WHERE what = 'failed' AND place.value <> '' GROUP BY cluster_id, day, place.name, place.value, what, part
ON CONFLICT DO NOTHING
"""
_NEWEST = """
INSERT INTO measures_stalejobhour (cluster_id, at, since)
SELECT DISTINCT cluster_id, at, now() FROM measures_jobsum WHERE level = 60 AND at > now() - interval '2 days'
ON CONFLICT DO NOTHING
"""


def fill(_apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    with editor.connection.cursor() as cursor:
        for level, facts in ((60, _HOURS), (1440, _DAYS)):
            cursor.execute(
                "INSERT INTO measures_partjobsum"  # noqa: S608  (names of our own)
                " (level, cluster_id, at, by, key, what, part, count, milliseconds)"
                " SELECT level, cluster_id, at, fact.name, fact.value, what, part, sum(count), sum(milliseconds)"
                f" FROM measures_jobsum CROSS JOIN LATERAL (VALUES {facts}) AS fact (name, value)"
                " WHERE level = %s GROUP BY level, cluster_id, at, fact.name, fact.value, what, part"
                " ON CONFLICT DO NOTHING",
                [level],
            )
        cursor.execute(_PLACES)
        cursor.execute(_NEWEST)


class Migration(migrations.Migration):
    dependencies = [
        ("measures", "0007_part_job_sums"),
    ]

    operations = [
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
