"""Backends from packages: the controller runs jobs on a kind of cluster that an entry point adds."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.controller.conftest import World
from tests.support.recipes import follow

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


@pytest.fixture
def instant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The kind from the recipe in platform/README.md, installed."""
    follow("backend", tmp_path)
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


def test_job_runs_on_a_cluster_of_an_added_kind(instant: str, home: None, transactional_db: None, client: Any) -> None:
    world = World.found("simulated", {})
    world.alice.platform_role = "admin"
    world.alice.save()
    client.force_login(world.alice, backend="django.contrib.auth.backends.ModelBackend")
    body = {"name": "theirs", "kind": instant, "config": {"cpu": "2"}}
    answer = client.post("/api/v1/clusters", json.dumps(body), content_type="application/json")
    assert answer.status_code == 201, answer.content
    world.cluster = Cluster.objects.get(name="theirs")
    queues.create(cluster=world.cluster, name="theirs", actor=PLATFORM, now=clock.now())

    spec = JobSpec.parse({"name": "one", "queue": "theirs", "tasks": [{"name": "main", "command": ["echo", "hi"]}]})
    job = services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: Job.objects.get(pk=job.pk).phase == "completed")
    (pod,) = job.pods.all()
    assert (pod.node, pod.phase) == ("instant", "succeeded")
    assert backend_of(world.cluster).inventory().logged == {job.uid.hex}


def test_invalid_configuration_of_an_added_kind_is_refused_with_its_path(instant: str, tmp_path: Path) -> None:
    with pytest.raises(Invalid) as refusal:
        registry.open_backend(instant, {"colour": "red"}, BackendContext("c1", tmp_path, clock.now))
    assert [problem.path for problem in refusal.value.problems] == ["config.colour"]


def test_built_in_kinds_cannot_be_replaced(instant: str) -> None:
    assert list(registry.kinds())[:3] == ["local", "kubernetes", "simulated"]
    assert registry.kinds()[instant].label == "Instant"
