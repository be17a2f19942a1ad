"""A platform with Alice, her tenant, a queue and a cluster."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes.control_plane import ControlPlane
from tests.support.pods import stop_all_pods

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log.services import PLATFORM, unit_of_work
from hekla.apps.jobs.models import Job
from hekla.apps.queues import services as queues
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.controller.backends import backend_of
from hekla.controller.cluster_controller import CACHE_DIFFERS
from hekla.controller.controllers import controllers
from hekla.lib import clock
from hekla.simulation.snapshot_cache import forget_all

LAST_SECONDS = 60.0


@pytest.fixture(autouse=True)
def engine_is_checked(settings, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The engine's caches must equal a fresh computation after every reconciliation."""
    settings.CHECK_ENGINE = True
    yield
    assert CACHE_DIFFERS not in caplog.text


@dataclass
class World:
    """The objects that tests act on."""

    alice: User
    tenant: Tenant
    cluster: Cluster
    queue: Queue

    @classmethod
    @unit_of_work()
    def found(cls, kind: str, config: dict[str, Any]) -> "World":
        """Creates Alice and her tenant, with a cluster of this kind and its queue."""
        now = clock.now()
        alice = accounts.create_user(username="alice", password=None, actor=PLATFORM, now=now)
        tenant = tenancy.create(slug="lab", name="Lab", actor=PLATFORM, now=now)
        tenancy.add_member(tenant, alice, "admin", actor=PLATFORM, now=now)
        cluster = clusters.create(name=kind, kind=kind, config=config, actor=PLATFORM, now=now)
        queue = queues.create(cluster=cluster, name="default", actor=PLATFORM, now=now)
        return cls(alice, tenant, cluster, queue)

    def backend_until(self, done: Callable[[], bool]) -> None:
        """Waits for a condition at the backend, without reconciling."""
        deadline = clock.now().timestamp() + LAST_SECONDS
        while not done():
            assert clock.now().timestamp() < deadline, describe()
            backend_of(self.cluster).wait(0.1)

    def reconcile_until(self, done: Callable[[], bool]) -> None:
        """Reconciles after each news from the backend, until the condition holds."""
        backend = backend_of(self.cluster)
        deadline = clock.now().timestamp() + LAST_SECONDS
        controllers.reconcile(self.cluster)
        while not done():
            assert clock.now().timestamp() < deadline, describe()
            backend.wait(0.2)
            controllers.reconcile(self.cluster)


def describe() -> str:
    """The state of all jobs, for a failing test."""
    return "\n".join(
        f"{job} {job.phase}/{job.gang_phase} {job.reason} {job.message} {job.waiting} "
        + str([(str(p), p.attempt, p.phase, p.reason, p.message) for p in job.pods.all()])
        for job in Job.objects.all()
    )


SIZE = {"cpu": "4", "memory": "8Gi", "pods": "20"}
PREPARE = {"min": 0.5, "max": 1.5}
"""The seconds of a simulated pod, of which ten pass in one."""
KINDS = ("local", "simulated", "kubernetes")
_FUNCTIONS = pytest.StashKey[dict[str, int]]()
"""The tests of a file that run on every kind, numbered in their order."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Tests of the controller run on one kind of cluster each, in turn; on every kind only in a thorough run.

    The kinds behave the same for the controller (`tests/backends/test_contract.py`). Tests about their differences
    name their kinds, or are marked `every_kind`.
    """
    if not isinstance(item, pytest.Function) or not _is_for_every_kind(item):
        return
    functions = item.parent.stash.setdefault(_FUNCTIONS, {}) if item.parent else {}
    turn = functions.setdefault(item.originalname, len(functions)) + len(item.path.stem)
    if item.callspec.params["world"] != KINDS[turn % len(KINDS)]:
        item.add_marker(pytest.mark.thorough)


def _is_for_every_kind(item: pytest.Function) -> bool:
    """Whether its world was made for each kind only because the fixture is."""
    is_chosen = any("world" in mark.args[0] for mark in item.iter_markers("parametrize"))
    is_made = "world" in getattr(getattr(item, "callspec", None), "params", {})
    return is_made and not is_chosen and item.get_closest_marker("every_kind") is None


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest, transactional_db: None, settings, tmp_path) -> Iterator[World]:
    """One node with four CPUs."""
    settings.HEKLA_HOME = tmp_path
    controllers.reset()
    config: dict[str, Any] = {
        "local": {"allocatable": SIZE},
        "simulated": {
            "nodes": [{"name": "n", "allocatable": SIZE}],
            "seed": 1,
            "speed": 10,
            "prepare_seconds": PREPARE,
        },
        "kubernetes": {},
    }[request.param]
    made = World.found(request.param, config or request.getfixturevalue("one_machine"))
    yield made
    backend = backend_of(made.cluster)
    if request.param == "local":
        stop_all_pods(backend)
    backend.close()
    controllers.reset()


@pytest.fixture
def one_machine(small_cluster: ControlPlane, granted_namespace: str, tmp_path) -> Iterator[dict[str, Any]]:
    """Adds a node to the real API server, and returns the configuration with its labels and a namespace."""
    labels = {"hekla.dev/test": granted_namespace}
    machines = small_cluster.add_nodes(1, allocatable=SIZE, labels=labels)
    (tmp_path / "kubeconfigs").mkdir()
    (tmp_path / "kubeconfigs" / "test").write_text(json.dumps(small_cluster.kubeconfig(small_cluster.user_token)))
    yield {"kubeconfig": "test", "namespace": granted_namespace, "node_labels": labels}
    small_cluster.remove_nodes(machines)


@pytest.fixture
def simulated(transactional_db: None, settings, tmp_path) -> Iterator[World]:
    """Room for every job. Pods start at once; stopped pods end after their grace period."""
    settings.HEKLA_HOME, settings.CHECK_ENGINE = tmp_path, False
    controllers.reset()
    size = {"cpu": "2000", "memory": "8Gi", "pods": "2000"}
    nothing, nodes = {"min": 0, "max": 0}, [{"name": "n", "allocatable": size}]
    yield World.found("simulated", {"nodes": nodes, "speed": 1, "prepare_seconds": nothing, "stop_seconds": 1e9})
    controllers.reset()


@contextmanager
def operated(nodes: list[dict[str, Any]], settings: Any, home: Path) -> Iterator[World]:
    """A simulated cluster of these nodes, whose pods start at once. Alice is an operator of the platform."""
    settings.HEKLA_HOME = home
    controllers.reset()
    forget_all()
    nothing = {"min": 0, "max": 0}
    world = World.found("simulated", {"nodes": nodes, "seed": 1, "speed": 100, "prepare_seconds": nothing})
    world.alice.platform_role = "operator"
    world.alice.save()
    yield world
    backend_of(world.cluster).close()
    controllers.reset()
    forget_all()
