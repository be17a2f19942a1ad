"""Backends in a folder of their own, and what every test of them needs to say shortly."""

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
from tests.support.pods import start_pod, stop_pod

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
    "kubernetes": {},  # made for each test
    "kubernetes-tenants": {},  # likewise; each tenant has a namespace of its own
    "local": {"allocatable": {"cpu": "4"}},
    "simulated": {
        "nodes": [{"name": "node", "count": 2, "allocatable": {"cpu": "8", "memory": "16Gi"}}],
        "speed": 1000,
        "prepare_seconds": {"min": 1, "max": 2},
        "run_seconds": {"min": 20, "max": 40},
    },
}


def health(*, config: Mapping[str, Any], home: Path, key: str | None = None) -> Health:
    """How a cluster of Kubernetes is."""
    found = registry.check_health("kubernetes", config, BackendContext("c1", home, now, key))
    assert found is not None
    return found


class Place:
    """One cluster of one kind, that may be opened again and again."""

    def __init__(self, kind: str, home: Path, config: dict[str, Any], tenant: str = "") -> None:
        self.kind = kind
        self.tenant = tenant
        self.home = home
        self.config = config
        self._slot = 0
        self._jobs: set[str] = set()
        self._opened: list[Backend] = []
        self.backend = self.reopened()

    def reopened(self) -> Backend:
        opened = open_backend(self.kind, self.config, BackendContext("c1", self.home, now))
        self._opened.append(opened)
        return opened

    def order(self, index: int = 0, *, job: str = "job", script: str = "exit 0", **fields) -> PodOrder:
        """A pod that runs a shell script; `runs_seconds` and `exit_code` say the same to the simulation."""
        seconds, code = fields.pop("runs_seconds", 1.0), fields.pop("exit_code", 0)
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
        """A pod that does not end by itself while a test looks."""
        return self.order(index, script="exec sleep 1000", runs_seconds=1_000_000, **fields)

    def start(self, order: PodOrder, *, at: Backend | None = None) -> None:
        """Raises what the backend yields for it. `at`: another opening of the cluster."""
        start_pod(at or self.backend, order)

    def started(self, order: PodOrder) -> PodKey:
        self.start(order)
        return order.key

    def stop(self, key: PodKey, *, reason: str) -> None:
        """Raises what the backend yields for it."""
        stop_pod(self.backend, key, reason=reason)

    @contextlib.contextmanager
    def starter(self, order: PodOrder) -> Iterator[subprocess.Popen[str]]:
        """A process of its own that is ready to start this pod, see `starter`. It is killed at the end."""
        wish = {"kind": self.kind, "home": str(self.home), "config": self.config, "node": order.node}
        wish |= {"index": order.key.index, "address": order.address, "tenant": self.tenant}
        argument = json.dumps({**wish, "script": order.command[-1]})
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        pipe = subprocess.PIPE
        command = [sys.executable, str(STARTER), argument]
        with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
            try:
                assert process.stdout.readline() == "ready\n"
                yield process
            finally:
                process.kill()

    def seen(self, key: PodKey) -> Observation | None:
        return next((pod for pod in self.backend.observe(None).pods if pod.key == key), None)

    def until(self, key: PodKey, *phases: PodPhase) -> Observation:
        """Wait as the controller does, until the pod is in one of these phases."""
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < give_up_at:
            pod = self.seen(key)
            if pod and pod.phase in phases:
                return pod
            self.backend.wait(0.2)
        raise AssertionError(f"{key} never came to {phases}: {self.seen(key)}")

    def works(self, *keys: PodKey) -> bool:
        """Whether these are at work and nothing else is, once what has ended is gone altogether."""
        backend, give_up_at = self.reopened(), time.monotonic() + PATIENCE_SECONDS
        while not (works := backend.inventory().alive == set(keys)) and time.monotonic() < give_up_at:
            time.sleep(0.05)
        return works

    def ended(self, key: PodKey) -> Observation:
        return self.until(key, *FINAL_POD_PHASES)

    def log(self, key: PodKey) -> str:
        return self.backend.logs(key, offset=0, limit=1_000_000).data.decode()

    def clear(self) -> None:
        for job in self._jobs:
            self.backend.remove_logs(job)
        for backend in self._opened:
            backend.close()


def _of_kubernetes(request: pytest.FixtureRequest, home: Path, *, is_apart: bool) -> dict[str, Any]:
    """A namespace of its own on the real API server of this run, with nodes that only pretend."""
    plane = request.getfixturevalue("small_cluster")
    namespace = request.getfixturevalue("tenants_namespace" if is_apart else "given_namespace")
    (home / "kubeconfigs").mkdir(parents=True)
    key = plane.kubeconfig(plane.tenants_token if is_apart else plane.user_token)
    (home / "kubeconfigs" / "test").write_text(json.dumps(key))
    apart = {"namespaces": "tenant"} if is_apart else {}
    return {"kubeconfig": "test", "namespace": namespace, **apart}


@pytest.fixture
def make_place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[str], Place]]:
    places: list[Place] = []

    def make(kind: str) -> Place:
        home = tmp_path / f"{kind}-{len(places)}"
        is_apart = kind == "kubernetes-tenants"
        config = CONFIGS[kind] or _of_kubernetes(request, home, is_apart=is_apart)
        places.append(Place(kind.partition("-")[0], home, config, "lab" if is_apart else ""))
        return places[-1]

    yield make
    for place in places:
        place.clear()


@pytest.fixture
def local(make_place: Callable[[str], Place]) -> Place:
    return make_place("local")


@pytest.fixture(params=sorted(CONFIGS))
def place(request: pytest.FixtureRequest, make_place: Callable[[str], Place]) -> Place:
    """All kinds, one after the other."""
    return make_place(request.param)
