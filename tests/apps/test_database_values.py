"""Timestamps and JSON are read fast, and as Django reads them."""

from datetime import UTC, datetime

import pytest
from django.db import DataError, connection
from django.db.backends.postgresql.psycopg_any import BaseTzLoader

from hekla.apps.clusters.models import Cluster
from hekla.apps.database_values import UtcLoader
from hekla.lib import clock

TEXTS = (
    "2026-05-04 12:00:00+00",
    "2026-05-04 12:00:00.5+00",
    "2026-05-04 12:00:00.000001+00",
    "0001-01-01 00:00:00+00",
    "9999-12-31 23:59:59.999999+00",
)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.django_db
def test_timestamp_is_what_django_reads(text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz, %s::timestamptz::text", [text, text])
        found, written = cursor.fetchone()
    slow = BaseTzLoader(0).load(written.encode()).replace(tzinfo=UTC)
    assert (found, found.tzinfo, written) == (slow, UTC, text)


@pytest.mark.django_db
def test_connections_use_the_fast_reader() -> None:
    connection.ensure_connection()
    assert isinstance(UtcLoader(0).load(b"2026-05-04 12:00:00+00"), datetime)
    with connection.cursor() as cursor:
        loader = cursor.cursor.adapters.get_loader(cursor.cursor.adapters.types["timestamptz"].oid, 0)
    assert loader is UtcLoader


@pytest.mark.parametrize("text", ["infinity", "4000-01-01 BC", "20000-01-01"])
@pytest.mark.django_db
def test_instant_that_python_does_not_have_is_an_error_of_the_data(text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [text])
        with pytest.raises(DataError):
            cursor.fetchone()


@pytest.mark.parametrize(
    "value", [{}, [], {"a": [1, 2.5, None, True, "ü\u2028"]}, "text", 10**40, 1.5, None, [{"b": {}}]]
)
@pytest.mark.django_db
def test_json_is_what_was_written(value: object) -> None:
    row = Cluster.objects.create(name="values", kind="simulated", config={"it": value}, created_at=clock.now())
    found = Cluster.objects.filter(pk=row.pk)
    assert found.values_list("config", flat=True).get() == {"it": value}
    assert found.values_list("config__it", flat=True).get() == value
