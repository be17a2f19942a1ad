"""Backends for tests, each in a folder of its own."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.pods import start_pod, stop_all_pods, stop_pod

from hekla.backends import registry
from hekla.backends.base import Backend, Health, Observation, PodKey, PodOrder
from hekla.backends.kind import BackendContext
from hekla.backends.registry import open_backend
from hekla.domain.addresses import Replica
from hekla.domain.phases import FINAL_POD_PHASES, PodPhase
from hekla.lib.clock import now

PATIENCE_SECONDS = 20.0
STARTER = Path(__file__).with_name("starter.py")
CONFIGS: dict[str, dict[str, Any]] = {
    "containers": {},  # made for the Podman of the test run: the kind local, with another runtime
    "kubernetes": {},  # made for each test
    "kubernetes-tenants": {},  # made for each test; each tenant has a namespace of its own
    "local": {"allocatable": {"cpu": "4"}},
    "simulated": {
        "nodes": [{"name": "node", "count": 2, "allocatable": {"cpu": "8", "memory": "16Gi"}}],
        "speed": 1000,
        "prepare_seconds": {"min": 1, "max": 2},
        "run_seconds": {"min": 20, "max": 40},
    },
}


def health(*, config: Mapping[str, Any], home: Path, key: str | None = None) -> Health:
    """The health of a Kubernetes cluster."""
    found = registry.check_health("kubernetes", config, BackendContext("c1", home, now, key))
    assert found is not None
    return found


VARIANTS = {"containers": "local", "kubernetes-tenants": "kubernetes"}
"""Kinds that share nearly all of their code with another."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Tests of all kinds leave the variants to a thorough run, unless they name kinds or are marked `every_kind`."""
    kind = getattr(getattr(item, "callspec", None), "params", {}).get("cluster")
    is_chosen = any("cluster" in mark.args[0] for mark in item.iter_markers("parametrize"))
    if kind in VARIANTS and not is_chosen and item.get_closest_marker("every_kind") is None:
        item.add_marker(pytest.mark.thorough)


class ClusterFixture:
    """One cluster of one kind, with the backends that tests open for it. Containers are a runtime of the kind local."""

    def __init__(self, kind: str, home: Path, config: dict[str, Any], tenant: str = "") -> None:
        self.kind = kind
        self.backend_kind = "local" if kind == "containers" else kind
        self.tenant = tenant
        self.home = home
        self.config = config
        self._slot = 0
        self._jobs: set[str] = set()
        self._backends: list[Backend] = []
        self.backend = self.reopen()

    def reopen(self) -> Backend:
        """Opens the cluster once more."""
        backend = open_backend(self.backend_kind, self.config, BackendContext("c1", self.home, now))
        self._backends.append(backend)
        return backend

    def order(self, index: int = 0, *, job: str = "job", script: str = "exit 0", **fields) -> PodOrder:
        """An order of a pod that runs a shell script; `runs_seconds` and `exit_code` are for the simulation."""
        seconds, code = fields.pop("runs_seconds", 0.2), fields.pop("exit_code", 0)
        self._slot += 1
        self._jobs.add(job)
        fields.setdefault("command", ("sh", "-c", script))
        replica = Replica(job, "test", "worker", index, self._slot)
        imagined = {"HEKLA_SIM_SECONDS": str(seconds), "HEKLA_SIM_EXIT": str(code)}
        return PodOrder(
            key=PodKey(job, "worker", index, 0, tenant=self.tenant),
            node=self.backend.nodes()[0].name,
            address=self.backend.runner.address(replica),
            env={**fields.pop("env", {}), **imagined},
            **fields,
        )

    def long(self, index: int = 0, **fields) -> PodOrder:
        """An order of a pod that does not end during the test."""
        return self.order(index, script="exec sleep 1000", runs_seconds=1_000_000, **fields)

    def start(self, order: PodOrder, *, at: Backend | None = None) -> None:
        """Raises the errors that the backend yields. `at`: another backend of the same cluster."""
        start_pod(at or self.backend, order)

    def started(self, order: PodOrder) -> PodKey:
        self.start(order)
        return order.key

    def stop(self, key: PodKey, *, reason: str) -> None:
        """Raises the errors that the backend yields."""
        stop_pod(self.backend, key, reason=reason)

    @contextlib.contextmanager
    def starter(self, order: PodOrder, times: int = 1) -> Iterator[subprocess.Popen[str]]:
        """A process that is ready to start this pod, so many times at once, see `starter`. It is killed at the end."""
        fields = {"kind": self.backend_kind, "home": str(self.home), "config": self.config, "node": order.node}
        fields |= {"index": order.key.index, "address": order.address, "tenant": self.tenant}
        argument = json.dumps({**fields, "script": order.command[-1], "times": times})
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        pipe = subprocess.PIPE
        command = [sys.executable, str(STARTER), argument]
        with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
            try:
                assert process.stdout.readline() == "ready\n"
                yield process
            finally:
                process.kill()

    def observation(self, key: PodKey) -> Observation | None:
        return next((pod for pod in self.backend.observe(None).pods if pod.key == key), None)

    def until(self, key: PodKey, *phases: PodPhase) -> Observation:
        """Waits, as the controller does, until the pod is in one of these phases."""
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < give_up_at:
            pod = self.observation(key)
            if pod and pod.phase in phases:
                return pod
            self.backend.wait(0.2)
        raise AssertionError(f"{key} never reached {phases}: {self.observation(key)}")

    def has_alive(self, *keys: PodKey) -> bool:
        """Whether exactly these pods are alive, once the ended ones are gone."""
        backend, give_up_at = self.reopen(), time.monotonic() + PATIENCE_SECONDS
        while not (is_alive := backend.inventory().alive == set(keys)) and time.monotonic() < give_up_at:
            time.sleep(0.05)
        return is_alive

    def ended(self, key: PodKey) -> Observation:
        return self.until(key, *FINAL_POD_PHASES)

    def log(self, key: PodKey) -> str:
        return self.backend.logs(key, offset=0, limit=1_000_000).data.decode()

    def clear(self) -> None:
        if self.kind == "local":
            stop_all_pods(self.backend)
        for job in self._jobs:
            self.backend.remove_logs(job)
        for backend in self._backends:
            backend.close()


def _kubernetes_config(request: pytest.FixtureRequest, home: Path, *, is_namespaced: bool) -> dict[str, Any]:
    """A namespace of its own on the real API server of this run, with nodes that only pretend."""
    plane = request.getfixturevalue("small_cluster")
    namespace = request.getfixturevalue("tenants_namespace" if is_namespaced else "granted_namespace")
    (home / "kubeconfigs").mkdir(parents=True)
    key = plane.kubeconfig(plane.tenants_token if is_namespaced else plane.user_token)
    (home / "kubeconfigs" / "test").write_text(json.dumps(key))
    namespaces = {"namespaces": "tenant"} if is_namespaced else {}
    return {"kubeconfig": "test", "namespace": namespace, **namespaces}


def _containers_config(request: pytest.FixtureRequest) -> dict[str, Any]:
    """This machine with containers of the run's Podman."""
    engine = request.getfixturevalue("podman")
    return {**CONFIGS["local"], "runtime": "containers", "socket": engine.socket, "image": engine.image}


@pytest.fixture
def make_cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., ClusterFixture]]:
    clusters: list[ClusterFixture] = []

    def make(kind: str, config: Mapping[str, Any] | None = None) -> ClusterFixture:
        home = tmp_path / f"{kind}-{len(clusters)}"
        is_namespaced = kind == "kubernetes-tenants"
        if kind == "containers":
            found = _containers_config(request)
        else:
            found = CONFIGS[kind] or _kubernetes_config(request, home, is_namespaced=is_namespaced)
        whole = {**found, **(config or {})}
        clusters.append(ClusterFixture(kind.partition("-")[0], home, whole, "lab" if is_namespaced else ""))
        return clusters[-1]

    yield make
    for cluster in clusters:
        cluster.clear()


@pytest.fixture
def local(make_cluster: Callable[..., ClusterFixture]) -> ClusterFixture:
    return make_cluster("local")


@pytest.fixture
def containers(make_cluster: Callable[..., ClusterFixture]) -> ClusterFixture:
    return make_cluster("containers")


@pytest.fixture(params=sorted(CONFIGS))
def cluster(request: pytest.FixtureRequest, make_cluster: Callable[..., ClusterFixture]) -> ClusterFixture:
    """A cluster of each kind, one after the other."""
    return make_cluster(request.param)
