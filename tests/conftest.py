"""What holds for every test."""

from collections.abc import Iterator

import pytest
from django.utils import translation
from hypothesis import HealthCheck, settings
from tests.support.examples import examples

from hekla.launcher import catalogues

settings.register_profile(
    "hekla",
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # a machine may be busy
)
settings.load_profile("hekla")
catalogues.compile_stale()


@pytest.fixture(autouse=True)
def nothing_remembered() -> None:
    """What a process keeps of its rows would outlive rows that a test rolls back."""
    from hekla.scheduling import occupancy

    occupancy.forget()


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found to help a job does not depend on how busy the machine is on which it is tested."""
    from hekla.simulation import what_if

    for name in ("_TYPING_SECONDS", "_TRYING_SECONDS", "_WAITING_SECONDS"):
        monkeypatch.setattr(what_if, name, 60.0)


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    """No test speaks the language that the one before it asked the console for."""
    with translation.override("en"):
        yield
