"""API servers that accept connections and answer nothing: clusters that answer are reconciled as before."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from django.db import connection
from tests.controller.conftest import World
from tests.support.silent_server import silent_server

from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.backends.base import BackendError
from hekla.backends.kubernetes.access import from_key
from hekla.backends.kubernetes.api import Api
from hekla.backends.kubernetes.async_client import AsyncClient
from hekla.backends.kubernetes.keys import ClusterKey
from hekla.backends.kubernetes.server_silence import ServerSilence
from hekla.controller import tasks
from hekla.controller.backends import backend_of
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock

SLOTS = 4
"""As in the worker of the control queue."""
_SILENT = 4


@pytest.fixture
def silent(simulated: World, tmp_path: Path) -> Iterator[list[Cluster]]:
    """As many silent clusters as there are slots."""
    (tmp_path / "kubeconfigs").mkdir()
    with silent_server() as url:
        found = []
        for number in range(_SILENT):
            name = f"silent-{number}"
            (tmp_path / "kubeconfigs" / name).write_text(kubeconfig(url, name))
            made = clusters.create(
                name=name, kind="kubernetes", config={"kubeconfig": name}, actor=PLATFORM, now=clock.now()
            )
            found.append(made)
        yield found
        for cluster in found:
            backend_of(cluster).close()


def kubeconfig(url: str, name: str) -> str:
    return yaml.safe_dump(
        {
            "clusters": [{"name": name, "cluster": {"server": url}}],
            "users": [{"name": name, "user": {"token": "t"}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
    )


class ControlSlots:
    """The slots of a worker, and one requester per cluster, as the watcher has."""

    def __init__(self, found: list[Cluster]) -> None:
        self._pool, self._stop = ThreadPoolExecutor(SLOTS), threading.Event()
        self._requesters = [threading.Thread(target=self._request, args=[one.pk]) for one in found]

    def __enter__(self) -> None:
        for thread in self._requesters:
            thread.start()

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        for thread in self._requesters:
            thread.join(60)
        self._pool.shutdown()

    def _request(self, cluster_id: int) -> None:
        while not self._stop.is_set():
            with suppress(TimeoutError):
                self._pool.submit(self._reconcile, cluster_id).result(1)
            self._stop.wait(0.2)

    def _reconcile(self, cluster_id: int) -> None:
        try:
            if not self._stop.is_set():
                tasks.turn(cluster_id)
        finally:
            connection.close()


def seconds_until_complete(world: World, name: str) -> float:
    task = {"name": "main", "command": ["true"]}
    spec = JobSpec.parse({"name": name, "queue": "default", "tasks": [task]})
    job = services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    start = time.monotonic()
    while not Job.objects.filter(pk=job.pk, pods__phase__in=["running", "succeeded"]).exists():
        assert time.monotonic() - start < 60
        time.sleep(0.02)
    return time.monotonic() - start


def test_silent_servers_leave_slots_for_a_cluster_that_answers(simulated: World, silent: list[Cluster]) -> None:
    with ControlSlots([simulated.cluster]):
        alone = [seconds_until_complete(simulated, f"alone-{number}") for number in range(3)]
    with ControlSlots([*silent, simulated.cluster]):
        time.sleep(2)  # all of them have been tried
        beside = [seconds_until_complete(simulated, f"beside-{number}") for number in range(3)]
    assert max(beside) < max(alone) + 2, f"{beside}, alone {alone}; a request to a silent server takes 5 s or more"


def test_after_a_time_out_other_requests_fail_at_once() -> None:
    with silent_server() as url:
        access = from_key(ClusterKey(url))
        api, client = Api(access), AsyncClient(access)
        with pytest.raises(BackendError):
            api.get("/api/v1/pods")
        began_at = time.monotonic()
        results = list(client.run_each(lambda number: read(client, number), range(1000), lambda: None))
        assert len(results) == 1000
        assert all(error is not None for _number, error in results)
        assert time.monotonic() - began_at < 4, "less than the time-out of one request"
        client.close()
        api.close()


async def read(client: AsyncClient, number: int) -> None:
    await client.get(f"/api/v1/pods/{number}")


def test_one_slow_request_among_answered_ones_is_no_silence() -> None:
    silence = ServerSilence()
    sent_at = silence.check()
    silence.record_answer()
    silence.record_timeout(sent_at)
    silence.check()
    silence.record_timeout(silence.check())
    with pytest.raises(BackendError):
        silence.check()
    silence.record_answer()
    silence.check()
