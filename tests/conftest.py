"""What holds for every test."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.utils import translation
from hypothesis import HealthCheck, settings
from servestatic.middleware import ServeStaticMiddleware

from hekla.launcher import catalogues

settings.register_profile("hekla", deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a machine may be busy
settings.load_profile("hekla")
catalogues.compile_stale()


@pytest.fixture(scope="session", autouse=True)
def static_files() -> Iterator[None]:
    """They are looked for once in a run: each client of a test begins with a console of its own, which looks anew."""
    look, found = ServeStaticMiddleware.add_files_from_finders, dict[str, Any]()

    def look_once(middleware: ServeStaticMiddleware) -> None:
        if not found:
            look(middleware)
            found.update(files=middleware.files, directories=middleware.directories)
        middleware.files, middleware.directories = dict(found["files"]), list(found["directories"])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ServeStaticMiddleware, "add_files_from_finders", look_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def passwords() -> Iterator[None]:
    """They are hashed as ever, but at the least cost that Argon2 takes."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"time_cost": 1, "memory_cost": 8, "parallelism": 1}.items():
            patch.setattr(Argon2PasswordHasher, name, value)
        yield


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
