"""Settings and fixtures for every test."""

import uuid
from collections.abc import Iterator

import pytest
from django.db import connections
from django.utils import translation
from hypothesis import HealthCheck, settings
from pytest_django.live_server_helper import LiveServer
from tests.support.economy import end_idle_connections
from tests.support.examples import examples
from tests.support.servers import has_tables

from hekla.launcher import catalogues

settings.register_profile(
    "hekla",
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # a machine may be busy
)
settings.load_profile("hekla")
catalogues.compile_stale()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """The test database is a copy of the database that has the tables already. The migrations take seconds."""
    if has_tables():
        for database in connections.settings.values():
            database["TEST"]["TEMPLATE"] = database["NAME"]


@pytest.fixture(scope="session")
def live_server(django_db_setup: None, live_server: LiveServer) -> Iterator[LiveServer]:
    """That of pytest-django, without connections after it."""
    yield live_server
    end_idle_connections()


@pytest.fixture(autouse=True)
def clear_occupancy_cache() -> None:
    """A process caches rows. The cache must not outlive the rows that a test rolls back."""
    from hekla.scheduling import occupancy

    occupancy.forget()


@pytest.fixture(autouse=True)
def forget_wrong_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count of wrong passwords of a name must not outlive the test, and tests share their names."""
    from hekla.apps.signin import slowdown

    monkeypatch.setattr(slowdown, "_PREFIX", f"slowdown:{uuid.uuid4()}")


@pytest.fixture(autouse=True)
def no_search_time_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the search for suggestions finds must not depend on how busy the machine is."""
    from hekla.simulation import what_if

    for name in ("_TYPING_SECONDS", "_TRYING_SECONDS", "_WAITING_SECONDS"):
        monkeypatch.setattr(what_if, name, 60.0)


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    """A test must not inherit the language that an earlier test activated."""
    with translation.override("en"):
        yield
