"""A kind of clusters that somebody else brings, as a package with an entry point: the controller runs jobs on it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.controller.conftest import World

from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.apps.queues import services as queues
from hekla.backends import registry
from hekla.backends.kind import BackendContext
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock

MODULE = '''
"""Pods that end well at once."""

import itertools
import threading
from datetime import UTC, datetime

from hekla.backends.base import Backend, Inventory, LogChunk, NodeInfo, Observation, Observations
from hekla.backends.base import UnknownPod, one_by_one
from hekla.backends.config import BackendConfig
from hekla.backends.kind import BackendKind
from hekla.domain.phases import PodPhase
from hekla.domain.resources import Resources


class InstantConfig(BackendConfig):
    cpu: str = "4"


class InstantBackend(Backend):
    def __init__(self, config, context):
        self._config, self._pods, self._logs, self._news = config, {}, {}, threading.Event()

    @property
    def runner(self):
        return self

    def address(self, replica):
        return f"instant-{replica.slot}"

    def start_many(self, orders, *, heartbeat):
        return one_by_one(self._start, orders, heartbeat)

    def stop_many(self, requests, *, heartbeat):
        return one_by_one(lambda request: None, requests, heartbeat)

    def _start(self, order):
        at = datetime.now(UTC)
        self._pods.setdefault(order.key, Observation(order.key, PodPhase.SUCCEEDED, at, exit_code=0))
        self._logs[order.key] = " ".join(order.command).encode()
        self._news.set()

    def nodes(self):
        amounts = {"cpu": self._config.cpu, "memory": "8Gi", "pods": 20}
        return [NodeInfo("instant", Resources.parse(amounts))]

    def observe(self, since):
        return Observations(list(self._pods.values()), "", complete=True)

    def forget(self, keys):
        for key in keys:
            self._pods.pop(key, None)

    def wait(self, timeout_seconds):
        found = self._news.wait(timeout_seconds)
        self._news.clear()
        return found

    def logs(self, key, *, offset, limit):
        if key not in self._logs:
            raise UnknownPod(key.name)
        data = self._logs[key][offset : offset + limit]
        return LogChunk(data, offset, offset + len(data), complete=True)

    def remove(self, job, *, tenant=""):
        self._pods = {key: pod for key, pod in self._pods.items() if key.job != job}

    def remove_logs(self, job, *, tenant=""):
        self.remove(job)
        self._logs = {key: text for key, text in self._logs.items() if key.job != job}

    def inventory(self, *, fresh=True):
        return Inventory(frozenset(), frozenset(), frozenset(key.job for key in self._logs))

    def close(self):
        pass


KIND = BackendKind("Instant", InstantConfig, InstantBackend)
'''


@pytest.fixture
def instant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The kind of that name, installed."""
    (tmp_path / "instant_pods.py").write_text(MODULE)
    package = tmp_path / "instant_pods-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: instant-pods\nVersion: 1\n")
    (package / "entry_points.txt").write_text(f"[{registry.ENTRY_POINTS}]\ninstant = instant_pods:KIND\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry.kinds.cache_clear()
    yield "instant"
    registry.kinds.cache_clear()


@pytest.fixture
def home(settings: Any, tmp_path: Path) -> Iterator[None]:
    settings.HEKLA_HOME = tmp_path / "home"
    controllers.reset()
    yield
    controllers.reset()


def test_a_job_runs_on_a_cluster_of_a_kind_that_a_package_brings(
    instant: str, home: None, transactional_db: None, client: Any
) -> None:
    world = World.found("simulated", {})
    world.alice.platform_role = "admin"
    world.alice.save()
    client.force_login(world.alice, backend="django.contrib.auth.backends.ModelBackend")
    wish = {"name": "theirs", "kind": instant, "config": {"cpu": "2"}}
    answer = client.post("/api/v1/clusters", json.dumps(wish), content_type="application/json")
    assert answer.status_code == 201, answer.content
    world.cluster = Cluster.objects.get(name="theirs")
    queues.create(cluster=world.cluster, name="theirs", actor=PLATFORM, now=clock.now())

    spec = JobSpec.parse({"name": "one", "queue": "theirs", "tasks": [{"name": "main", "command": ["echo", "hi"]}]})
    job = services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    world.turn_until(lambda: Job.objects.get(pk=job.pk).phase == "completed")
    (pod,) = job.pods.all()
    assert (pod.node, pod.phase) == ("instant", "succeeded")
    assert backend_of(world.cluster).inventory().logged == {job.uid.hex}


def test_a_wrong_configuration_of_such_a_kind_is_refused_with_its_path(instant: str, tmp_path: Path) -> None:
    with pytest.raises(Invalid) as refusal:
        registry.open_backend(instant, {"colour": "red"}, BackendContext("c1", tmp_path, clock.now))
    assert [problem.path for problem in refusal.value.problems] == ["config.colour"]


def test_ours_cannot_be_replaced(instant: str) -> None:
    assert list(registry.kinds())[:3] == ["local", "kubernetes", "simulated"]
    assert registry.kinds()[instant].label == "Instant"
