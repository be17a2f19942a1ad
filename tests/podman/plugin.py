"""A pytest plugin: one Podman per run."""

from collections.abc import Iterator

import pytest
from tests.podman.programs import NoPodman, programs
from tests.podman.registry import Registry
from tests.podman.server import Podman


@pytest.fixture(scope="session")
def podman() -> Iterator[Podman]:
    """The running Podman of this test run, with the image of the tests; skips if it cannot run here."""
    try:
        server = Podman(programs())
    except NoPodman as missing:
        pytest.skip(str(missing))
    server.prepare()
    try:
        server.start()
        server.build()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def registry(podman: Podman) -> Iterator[Registry]:
    """A running registry with a password, from which Podman pulls."""
    server = Registry(podman, programs())
    server.start()
    yield server
    server.stop()
