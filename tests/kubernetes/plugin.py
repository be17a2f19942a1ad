"""A pytest plugin: one Kubernetes control plane for the run, and a namespace of its own for each test."""

from collections.abc import Iterator

import pytest
from tests.kubernetes.binaries import BUILD_SECONDS, NoBinaries, binaries
from tests.kubernetes.control_plane import READY_WITHIN_SECONDS, ControlPlane

_FIRST_TEST_SECONDS = BUILD_SECONDS + READY_WITHIN_SECONDS + 300.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whichever test comes first waits for the build."""
    for item in items:
        if "control_plane" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.kubernetes)
            item.add_marker(pytest.mark.timeout(_FIRST_TEST_SECONDS))


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A running control plane without nodes; skips where its programs cannot be had."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():  # a first build takes minutes, and says so
            folder = binaries()
    except NoBinaries as missing:
        pytest.skip(str(missing))
    plane = ControlPlane(folder)
    plane.start()
    yield plane
    plane.stop()


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A fresh namespace in which pods can be made."""
    body = {"metadata": {"generateName": "test-"}}
    name = control_plane.request("POST", "/api/v1/namespaces", body)["metadata"]["name"]
    accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
    control_plane.wait_until(lambda: bool(control_plane.request("GET", accounts)["items"]))  # no pod without one
    yield name
    control_plane.request("DELETE", f"/api/v1/namespaces/{name}")
