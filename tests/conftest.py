"""Settings and fixtures for every test."""

import uuid
from collections.abc import Iterator

import pytest
from django.db import connections
from django.utils import translation
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from pytest_django.live_server_helper import LiveServer
from tests.support.economy import end_idle_connections
from tests.support.examples import EVERY, examples
from tests.support.servers import has_tables

from hekla.launcher import catalogues

settings.register_profile(
    "hekla",
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # a machine may be busy
)
settings.load_profile("hekla")
if EVERY > 1:
    # Of a few examples, hardly one is a constant of Hekla's code. Each worker would read those of all modules, and each
    # strategy would choose the fitting ones out of ten thousand.
    providers._get_local_constants = lambda: providers._local_constants
catalogues.compile_stale()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """The test database is a copy of the database that has the tables already. The migrations take seconds."""
    if has_tables():
        for database in connections.settings.values():
            database["TEST"]["TEMPLATE"] = database["NAME"]


def _no_marks() -> None:
    """Takes the place of fixtures of pytest-django that run before each test for marks that no test has."""


_django_set_urlconf = pytest.fixture(scope="session", name="_django_set_urlconf")(_no_marks)
_django_isolate_apps = pytest.fixture(scope="session", name="_django_isolate_apps")(_no_marks)
_invalid_templates = pytest.fixture(scope="session", name="_template_string_if_invalid_marker")(_no_marks)


@pytest.fixture(scope="session")
def live_server(django_db_setup: None, live_server: LiveServer) -> Iterator[LiveServer]:
    """That of pytest-django, without connections after it."""
    yield live_server
    end_idle_connections()


@pytest.fixture(scope="session", autouse=True)
def no_search_time_limits(django_test_environment: None) -> Iterator[None]:
    """What the search for suggestions finds must not depend on how busy the machine is."""
    from hekla.simulation import what_if

    with pytest.MonkeyPatch.context() as patch:
        for name in ("_TYPING_SECONDS", "_TRYING_SECONDS", "_WAITING_SECONDS"):
            patch.setattr(what_if, name, 60.0)
        yield


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """What a process remembers must not outlive the test: rows, which are rolled back, wrong passwords of a name, which
    tests share, and the language.

    One fixture for all of it: each takes its time in thousands of tests.
    """
    from hekla.apps.signin import slowdown
    from hekla.scheduling import occupancy

    occupancy.forget()
    slowdown._PREFIX = f"slowdown:{uuid.uuid4()}"
    with translation.override("en"):
        yield
