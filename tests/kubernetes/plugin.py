"""A pytest plugin: Helm, one Kubernetes control plane per run, and one namespace per test."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kubernetes.binaries import CONTROL_PLANE, HELM, VOLCANO
from tests.kubernetes.control_plane import READY_WITHIN_SECONDS, ControlPlane, RequestRefused
from tests.kubernetes.go_programs import BUILD_SECONDS, FILES, GoPrograms, NoBinaries
from tests.kubernetes.volcano.processes import Volcano, define

from hekla.lib.checkout import CHECKOUT

_FIRST_TEST_SECONDS = 3 * BUILD_SECONDS + READY_WITHIN_SECONDS + 300.0
_PLANE = pytest.StashKey[ControlPlane]()
_FILES = pytest.StashKey[set[Path]]()
"""The files with a test that needs Kubernetes. Of several workers, one has all these tests, and none between them."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that need Kubernetes. Their timeout includes the build, which the first of them waits for."""
    config.stash[_FILES] = {item.path for item in items if _needs_kubernetes(item)}
    for item in items:
        if _needs_kubernetes(item):
            item.add_marker(pytest.mark.kubernetes)
            item.add_marker(pytest.mark.timeout(_FIRST_TEST_SECONDS))


def _needs_kubernetes(item: pytest.Item) -> bool:
    """Whether the test needs Kubernetes: by its mark, its fixtures, or a backend kind among its parameters."""
    parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
    is_marked = item.get_closest_marker("kubernetes") is not None
    is_built_for = {"programs", "helm", "volcano", "topology_kinds"} & set(getattr(item, "fixturenames", ()))
    return is_marked or bool(is_built_for) or any(kind in parameters for kind in ("kubernetes", "kubernetes-tenants"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Suspend the control plane between files, or tests, that need it. `order` puts most of them in one row."""
    if (plane := item.config.stash.get(_PLANE, None)) is None:
        return
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    if _needs_kubernetes(item) if is_worker else item.path in item.config.stash[_FILES]:
        if plane.is_suspended:
            plane.resume()
    elif not plane.is_suspended:
        plane.suspend()


@pytest.fixture(scope="session")
def programs(request: pytest.FixtureRequest) -> Path:
    """The folder with the programs of a control plane; skips if they are not available."""
    return _built(CONTROL_PLANE, request)


@pytest.fixture(scope="session")
def helm(request: pytest.FixtureRequest) -> Path:
    """Helm's executable; skips if it is not available."""
    return _built(HELM, request) / "helm"


def _built(go_programs: GoPrograms, request: pytest.FixtureRequest) -> Path:
    capture = request.config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():  # prints a message: a first build takes minutes
            return go_programs.built()
    except NoBinaries as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def control_plane(programs: Path, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """The running control plane of this test run, without nodes."""
    for plane in _running(programs):
        request.config.stash[_PLANE] = plane
        yield plane


@pytest.fixture(scope="module")
def disposable_control_plane(programs: Path) -> Iterator[ControlPlane]:
    """A separate control plane that the tests of a module may kill: after a crash, watches reconnect with delays."""
    yield from _running(programs)


def _running(programs: Path) -> Iterator[ControlPlane]:
    plane = ControlPlane(programs)
    plane.start()
    yield plane
    plane.stop()


@contextmanager
def new_namespace(plane: ControlPlane, prefix: str = "test-", labels: Mapping[str, str] | None = None) -> Iterator[str]:
    """A new namespace with these labels in which pods can be created.

    It stays, without its pods: to delete it, the controllers would list the objects of every kind.
    """
    body = {"metadata": {"generateName": prefix, "labels": labels or {}}}
    name = plane.request("POST", "/api/v1/namespaces", body)["metadata"]["name"]
    accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
    # Pods need a service account.
    plane.wait_until(lambda: bool(plane.request("GET", accounts)["items"]), 60.0)
    yield name
    plane.request("DELETE", f"/api/v1/namespaces/{name}/pods?gracePeriodSeconds=0")


@pytest.fixture
def namespace(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of this test. Volcano's jobs go before their pods, which it would replace."""
    with new_namespace(control_plane) as name:
        yield name
        if "volcano" in request.fixturenames:
            control_plane.request("DELETE", f"/apis/batch.volcano.sh/v1alpha1/namespaces/{name}/jobs")


@pytest.fixture(scope="session")
def small_cluster(control_plane: ControlPlane) -> ControlPlane:
    """The control plane with two nodes of eight CPUs. The user `hekla` may read nodes."""
    control_plane.add_nodes(2)
    _grant(control_plane, "rights.yaml")
    _grant(control_plane, "rights-adopted.yaml")
    _grant(control_plane, "rights-priorities.yaml")
    _grant(control_plane, "rights-devices.yaml")
    _grant(control_plane, "rights-storage.yaml")
    _grant(control_plane, "rights-connections.yaml")
    _grant(control_plane, "rights-terminals.yaml")
    return control_plane


@pytest.fixture
def granted_namespace(small_cluster: ControlPlane, namespace: str) -> str:
    """A namespace in which the user `hekla` has exactly the permissions of a deployment."""
    grant_in_namespace(small_cluster, "rights.yaml", namespace)
    return namespace


@pytest.fixture
def claims_namespace(small_cluster: ControlPlane, granted_namespace: str) -> str:
    """A namespace in which the user `hekla` also has exactly the permissions to allocate claims."""
    grant_in_namespace(small_cluster, "rights-devices.yaml", granted_namespace)
    return granted_namespace


@pytest.fixture
def volumes_namespace(small_cluster: ControlPlane, granted_namespace: str) -> str:
    """A namespace in which the user `hekla` also has exactly the permissions to bind volume claims."""
    grant_in_namespace(small_cluster, "rights-storage.yaml", granted_namespace)
    return granted_namespace


@pytest.fixture
def connections(small_cluster: ControlPlane, granted_namespace: str) -> None:
    """The user `hekla` may also run commands in pods of the namespace, and reach their ports."""
    grant_in_namespace(small_cluster, "rights-connections.yaml", granted_namespace)


@pytest.fixture
def tenants_namespace(small_cluster: ControlPlane, namespace: str) -> Iterator[str]:
    """A namespace; the user `hekla-tenants` may create namespaces of tenants beside it, as in a deployment."""
    for file in ("rights.yaml", "rights-tenants.yaml", "rights-devices.yaml", "rights-storage.yaml"):
        _grant(small_cluster, file, _HEKLA_TENANTS)
    grant_in_namespace(small_cluster, "rights.yaml", namespace, _HEKLA_TENANTS)
    yield namespace
    found = small_cluster.request("GET", "/api/v1/namespaces")["items"]
    for name in (one["metadata"]["name"] for one in found):
        if name.startswith(f"{namespace}-"):
            small_cluster.request("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="module")
def volcano(request: pytest.FixtureRequest, small_cluster: ControlPlane) -> Iterator[Volcano]:
    """The real Volcano on the small cluster, for the tests of one module; skips if it is not available."""
    running = Volcano(small_cluster, _built(VOLCANO, request))
    try:
        running.start()
        _grant(small_cluster, "rights-volcano.yaml")
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def topology_kinds(request: pytest.FixtureRequest, small_cluster: ControlPlane) -> None:
    """The small cluster knows HyperNode and Numatopology objects."""
    for name in ("topology.volcano.sh_hypernodes", "nodeinfo.volcano.sh_numatopologies"):
        define(small_cluster, _built(VOLCANO, request) / FILES / f"{name}.yaml")


@pytest.fixture
def volcano_namespace(volcano: Volcano, granted_namespace: str) -> str:
    """A namespace in which the user `hekla` also has exactly the permissions for delegated jobs."""
    grant_in_namespace(volcano.plane, "rights-volcano.yaml", granted_namespace)
    return granted_namespace


_HEKLA, _HEKLA_TENANTS = "hekla", "hekla-tenants"
_CLUSTER_WIDE = ("ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
_ACCOUNT = "system:serviceaccount:hekla:hekla"


def _grant(plane: ControlPlane, file: str, user: str = _HEKLA) -> None:
    """Create the cluster-wide roles and bindings of the file, unless they exist."""
    for document in _rights(file):
        if document["kind"] in _CLUSTER_WIDE:
            try:
                plane.request("POST", _place(document, ""), _with_user(document, user))
            except RequestRefused as refusal:
                if refusal.reason != "AlreadyExists":
                    raise


def grant_in_namespace(plane: ControlPlane, file: str, namespace: str, user: str = _HEKLA) -> None:
    (binding,) = [document for document in _rights(file) if document["kind"] == "RoleBinding"]
    binding["metadata"]["namespace"] = namespace
    plane.request("POST", _place(binding, namespace), _with_user(binding, user))


def _rights(file: str) -> list[dict[str, Any]]:
    return list(yaml.load_all((CHECKOUT / "deploy" / "kubernetes" / file).read_text(), yaml.CSafeLoader))


def _place(document: dict[str, Any], namespace: str) -> str:
    inside = f"namespaces/{namespace}/" if namespace else ""
    kind = document["kind"].lower()
    return f"/apis/{document['apiVersion']}/{inside}{kind[:-1] + 'ies' if kind.endswith('y') else kind + 's'}"


def _with_user(document: dict[str, Any], user: str) -> dict[str, Any]:
    """The document for this user instead of a service account, with the same permissions. Users share the roles."""
    for condition in document.get("spec", {}).get("matchConditions", ()):
        condition["expression"] = condition["expression"].replace(_ACCOUNT, user)
    if "subjects" not in document:
        return document
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    name = document["metadata"]["name"] + ("" if user == _HEKLA else f"-of-{user}")
    return {**document, "metadata": {**document["metadata"], "name": name}, "subjects": [subject]}
