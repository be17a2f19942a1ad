"""Adds up the starved queues of the days that exist. The version before may add hours meanwhile: the next hour of their
day adds them up, too.
"""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

_FILL = """
INSERT INTO measures_starvedqueueday
    (at, cluster_id, resource, queue_id, other_id, milliseconds, first_at, last_at)
SELECT date_trunc('day', at, 'UTC') AS day, cluster_id, resource, queue_id, other_id,
    sum(milliseconds), min(first_at), max(last_at)
FROM measures_starvedqueuetime GROUP BY day, cluster_id, resource, queue_id, other_id
"""


def fill(_apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    with editor.connection.cursor() as cursor:
        cursor.execute(_FILL)


class Migration(migrations.Migration):
    dependencies = [
        ("measures", "0009_costs"),
    ]

    operations = [
        migrations.CreateModel(
            name="StarvedQueueDay",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "cluster_id",
                        "at",
                        "resource",
                        "queue_id",
                        "other_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("cluster_id", models.BigIntegerField()),
                ("at", models.DateTimeField()),
                ("resource", models.CharField(max_length=253)),
                ("queue_id", models.BigIntegerField()),
                ("other_id", models.BigIntegerField()),
                ("milliseconds", models.BigIntegerField()),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["at"], name="starved_queue_day_by_age")],
                "abstract": False,
            },
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
