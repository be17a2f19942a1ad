"""Adds up the sums that exist. The version before may write others meanwhile: those of two days are computed again."""

from collections.abc import Iterable, Mapping

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

_HELD = ("useful", "idle", "unmeasured", "gang", "preempted", "retried", "failed")
_ALL = (*_HELD, "free", "drained", "down", "beyond")
_PARTS = {"queue": "queue_id", "tenant": "tenant_id", "person": "owner_id", "kind": "kind"}
_NEWEST = """
INSERT INTO measures_stalehour (cluster_id, at, since)
SELECT cluster_id, at, now() FROM measures_measuredcluster
CROSS JOIN LATERAL generate_series(date_trunc('hour', until, 'UTC') - interval '2 days', until, '1 hour') AS at
ON CONFLICT DO NOTHING
"""


def fill(_apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    with editor.connection.cursor() as cursor:
        cursor.execute(_statement("clustergputime", "nodegputime", {"model": "model"}, _ALL))
        for name, column in _PARTS.items():
            keys = {"by": f"'{name}'", "key": f"{column}::text", "model": "model"}
            cursor.execute(_statement("partgputime", "holdergputime", keys, _HELD, "WHERE level > 1"))
        cursor.execute(_NEWEST)


def _statement(target: str, source: str, keys: Mapping[str, str], classes: Iterable[str], where: str = "") -> str:
    columns = ", ".join(("level", "cluster_id", "at", *keys, *classes))
    values = ", ".join(("level", "cluster_id", "at", *keys.values(), *(f"sum({one})" for one in classes)))
    grouped = ", ".join(str(number) for number in range(1, 4 + len(keys)))
    return (
        f"INSERT INTO measures_{target} ({columns}) SELECT {values} FROM measures_{source} {where}"  # noqa: S608  (names of our own)
        f" GROUP BY {grouped} ON CONFLICT DO NOTHING"
    )


class Migration(migrations.Migration):
    dependencies = [
        ("measures", "0003_sums_of_clusters_and_parts"),
    ]

    operations = [
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
