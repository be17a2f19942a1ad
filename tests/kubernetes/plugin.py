"""A pytest plugin: Helm, one Kubernetes control plane for the run, and a namespace of its own for each test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kubernetes.binaries import CONTROL_PLANE, HELM, VOLCANO
from tests.kubernetes.control_plane import READY_WITHIN_SECONDS, ControlPlane, RequestRefused
from tests.kubernetes.go_programs import BUILD_SECONDS, GoPrograms, NoBinaries
from tests.kubernetes.volcano.processes import Volcano

from hekla.lib.checkout import CHECKOUT

_FIRST_TEST_SECONDS = 3 * BUILD_SECONDS + READY_WITHIN_SECONDS + 300.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whichever test comes first waits for the build."""
    for item in items:
        if _needs_it(item):
            item.add_marker(pytest.mark.kubernetes)
            item.add_marker(pytest.mark.timeout(_FIRST_TEST_SECONDS))


def _needs_it(item: pytest.Item) -> bool:
    """By its fixtures, or as one of the kinds that it is run with."""
    parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
    is_marked = item.get_closest_marker("kubernetes") is not None
    is_built_for = {"programs", "helm", "volcano"} & set(getattr(item, "fixturenames", ()))
    return is_marked or bool(is_built_for) or any(kind in parameters for kind in ("kubernetes", "kubernetes-tenants"))


@pytest.fixture(scope="session")
def programs(request: pytest.FixtureRequest) -> Path:
    """The folder with the programs of a control plane; skips where they cannot be had."""
    return _built(CONTROL_PLANE, request)


@pytest.fixture(scope="session")
def helm(request: pytest.FixtureRequest) -> Path:
    """Helm's command line; skips where it cannot be had."""
    return _built(HELM, request) / "helm"


def _built(wanted: GoPrograms, request: pytest.FixtureRequest) -> Path:
    capture = request.config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():  # a first build takes minutes, and says so
            return wanted.built()
    except NoBinaries as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def control_plane(programs: Path) -> Iterator[ControlPlane]:
    """The running control plane of this run, without nodes."""
    yield from _running(programs)


@pytest.fixture
def mortal_control_plane(programs: Path) -> Iterator[ControlPlane]:
    """One that a test may kill: what watches an API server comes back to it after pauses, which others would feel."""
    yield from _running(programs)


def _running(programs: Path) -> Iterator[ControlPlane]:
    plane = ControlPlane(programs)
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


@pytest.fixture(scope="session")
def small_cluster(control_plane: ControlPlane) -> ControlPlane:
    """The control plane with two machines of eight CPUs, in which the user `hekla` may see machines."""
    control_plane.add_nodes(2)
    _give(control_plane, "rights.yaml")
    _give(control_plane, "rights-adopted.yaml")
    _give(control_plane, "rights-priorities.yaml")
    return control_plane


@pytest.fixture
def given_namespace(small_cluster: ControlPlane, namespace: str) -> str:
    """A namespace in which the user `hekla` has the rights that a deployment gives, and no others."""
    give_inside(small_cluster, "rights.yaml", namespace)
    return namespace


@pytest.fixture
def tenants_namespace(small_cluster: ControlPlane, namespace: str) -> Iterator[str]:
    """One beside which the user `hekla-tenants` may make those of tenants, as a deployment lets it, and no more."""
    for file in ("rights.yaml", "rights-tenants.yaml"):
        _give(small_cluster, file, _OF_TENANTS)
    give_inside(small_cluster, "rights.yaml", namespace, _OF_TENANTS)
    yield namespace
    found = small_cluster.request("GET", "/api/v1/namespaces")["items"]
    for name in (one["metadata"]["name"] for one in found):
        if name.startswith(f"{namespace}-"):
            small_cluster.request("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="module")
def volcano(request: pytest.FixtureRequest, small_cluster: ControlPlane) -> Iterator[Volcano]:
    """The real Volcano beside the small cluster, for the tests of one module; skips where it cannot be had."""
    running = Volcano(small_cluster, _built(VOLCANO, request))
    try:
        running.start()
        _give(small_cluster, "rights-volcano.yaml")
        yield running
    finally:
        running.stop()


@pytest.fixture
def volcano_namespace(volcano: Volcano, given_namespace: str) -> str:
    """A namespace in which the user `hekla` may also do what a cluster led by Volcano needs, and no more."""
    give_inside(volcano.plane, "rights-volcano.yaml", given_namespace)
    return given_namespace


_HEKLA, _OF_TENANTS = "hekla", "hekla-tenants"
_OF_THE_CLUSTER = ("ClusterRole", "ClusterRoleBinding")


def _give(plane: ControlPlane, file: str, user: str = _HEKLA) -> None:
    """What the file gives in all of the cluster; another module may have given it before."""
    for document in _rights(file):
        if document["kind"] in _OF_THE_CLUSTER:
            try:
                plane.request("POST", _place(document, ""), _for_the_user(document, user))
            except RequestRefused as refusal:
                if refusal.reason != "AlreadyExists":
                    raise


def give_inside(plane: ControlPlane, file: str, namespace: str, user: str = _HEKLA) -> None:
    (binding,) = [document for document in _rights(file) if document["kind"] == "RoleBinding"]
    binding["metadata"]["namespace"] = namespace
    plane.request("POST", _place(binding, namespace), _for_the_user(binding, user))


def _rights(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((CHECKOUT / "deploy" / "kubernetes" / file).read_text()))


def _place(document: dict[str, Any], namespace: str) -> str:
    inside = f"namespaces/{namespace}/" if namespace else ""
    return f"/apis/{document['apiVersion']}/{inside}{document['kind'].lower()}s"


def _for_the_user(document: dict[str, Any], user: str) -> dict[str, Any]:
    """Given to a user, since who a token is for makes no difference to what it may. Users share the roles."""
    if "subjects" not in document:
        return document
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    name = document["metadata"]["name"] + ("" if user == _HEKLA else f"-of-{user}")
    return {**document, "metadata": {**document["metadata"], "name": name}, "subjects": [subject]}
