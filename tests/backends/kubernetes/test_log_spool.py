"""The log spool: logs that cannot be read now are read later, and silent nodes delay no others."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
import urllib3
from tests.backends.conftest import ClusterFixture

from hekla.apps.clusters.leases import LIFETIME
from hekla.backends.base import BackendError, PodKey
from hekla.backends.kubernetes import backend as module
from hekla.backends.kubernetes import node_backoff
from hekla.backends.kubernetes.api import Api, ApiError
from hekla.backends.kubernetes.async_client import AsyncClient
from hekla.backends.kubernetes.spool import Spool

AWAY = ApiError(500, "InternalError", "dial tcp 10.0.0.1:10250: i/o timeout")
NO_ANSWER = BackendError("The API server does not answer: ReadTimeout")


@pytest.fixture
def cloud(make_cluster: Callable[[str], ClusterFixture]) -> ClusterFixture:
    return make_cluster("kubernetes")


def ended(cluster: ClusterFixture, index: int = 0) -> PodKey:
    key = cluster.started(cluster.order(index))
    cluster.ended(key)
    return key


def fail_logs(patch: pytest.MonkeyPatch, error: Exception, *keys: PodKey) -> list[str]:
    """Reading logs of these pods fails. Returns the paths of all requests."""
    at_once, one, paths = AsyncClient.text, Api.text, []

    def record(path: str) -> None:
        paths.append(path)
        if any(f"/{key.name}/" in path for key in keys):
            raise error

    async def client_text(self: AsyncClient, path: str, **params: str | int) -> bytes:
        record(path)
        return await at_once(self, path, **params)

    def api_text(self: Api, path: str, **params: str | int) -> bytes:
        record(path)
        return one(self, path, **params)

    patch.setattr(AsyncClient, "text", client_text)
    patch.setattr(Api, "text", api_text)
    return paths


@pytest.mark.kubernetes
@pytest.mark.parametrize("error", [AWAY, NO_ANSWER])
def test_unreadable_log_is_read_later_and_delays_no_other(cloud, monkeypatch, error) -> None:
    first, second = ended(cloud, 0), ended(cloud, 1)
    log = cloud.log(first)
    monkeypatch.setattr(node_backoff, "RETRY_SECONDS", 0.0)
    with monkeypatch.context() as patch:
        fail_logs(patch, error, first)
        cloud.backend.forget([first, second])
        assert cloud.observation(first) is not None
        assert cloud.observation(second) is None
    cloud.backend.forget([first])
    assert cloud.observation(first) is None
    assert cloud.log(first) == log


@pytest.mark.kubernetes
def test_silent_node_gets_one_log_request(cloud, monkeypatch) -> None:
    keys = [ended(cloud, index) for index in range(3)]
    with monkeypatch.context() as patch:
        paths = fail_logs(patch, NO_ANSWER, *keys)
        cloud.backend.forget(keys)
        cloud.backend.forget(keys)
    assert len(paths) == 1
    monkeypatch.setattr(node_backoff, "RETRY_SECONDS", 0.0)
    cloud.backend.forget(keys)
    assert cloud.backend.observe(None).pods == []


@pytest.mark.kubernetes
def test_log_of_a_long_silent_node_is_given_up_with_a_message(cloud, monkeypatch) -> None:
    key = ended(cloud)
    monkeypatch.setattr(node_backoff, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(node_backoff, "GIVE_UP_SECONDS", 0.0)
    fail_logs(monkeypatch, AWAY, key)
    cloud.backend.forget([key])
    cloud.backend.forget([key])
    assert cloud.observation(key) is None
    assert "does not answer" in cloud.log(key)


@pytest.mark.kubernetes
def test_unreadable_log_of_a_running_pod_is_an_error(cloud, monkeypatch) -> None:
    key = cloud.started(cloud.long())
    with monkeypatch.context() as patch:
        fail_logs(patch, AWAY, key)
        with pytest.raises(BackendError):
            cloud.backend.logs(key, offset=100, limit=10)


@pytest.mark.kubernetes
def test_read_timeout_is_shorter_than_the_lease(cloud, monkeypatch) -> None:
    key = ended(cloud)
    connections = cloud.backend.parts.api.client.rest_client.pool_manager
    request, timeouts = connections.request, []

    def record(*args, timeout: urllib3.Timeout, **more) -> urllib3.BaseHTTPResponse:
        timeouts.append(timeout.read_timeout)
        return request(*args, timeout=timeout, **more)

    with monkeypatch.context() as patch:
        patch.setattr(connections, "request", record)
        cloud.log(key)
    assert timeouts[-1] < LIFETIME.total_seconds()


@pytest.mark.kubernetes
def test_forget_stops_when_its_time_is_over(cloud, monkeypatch) -> None:
    keys = [ended(cloud, index) for index in range(2)]
    monkeypatch.setattr(module, "FORGET_PATIENCE_SECONDS", 0.0)
    cloud.backend.forget(keys)
    assert cloud.observation(keys[1]) is not None


@pytest.mark.kubernetes
def test_full_disk_loses_no_log(cloud, monkeypatch) -> None:
    key = ended(cloud)
    log = cloud.log(key)

    def full(path: Path, _data: bytes) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        cloud.backend.forget([key])
        with pytest.raises(BackendError):
            cloud.backend.remove("job")
    assert not [path for path in (cloud.home / "kubernetes").rglob("*") if path.is_file()]
    cloud.backend.forget([key])
    assert (cloud.observation(key), cloud.log(key)) == (None, log)


def test_draft_of_a_log_is_used_only_without_a_saved_log(tmp_path: Path) -> None:
    spool, stays, goes = Spool(tmp_path), PodKey("job", "main", 0, 1), PodKey("job", "main", 1, 1)
    for key in (stays, goes):
        spool.draft(key, b"a")
        spool.draft(key, b"ab")
        assert not spool.has(key), "a draft does not count as a log"
    spool.save(stays, b"abc")
    spool.promote_draft(stays)
    spool.promote_draft(goes)
    assert [spool.read(key, 0, 9).data for key in (stays, goes)] == [b"abc", b"ab"]
    assert [path.name for path in (tmp_path / "job").iterdir() if path.name.startswith(".")] == []
    spool.promote_draft(PodKey("job", "main", 2, 1))
    assert not spool.has(PodKey("job", "main", 2, 1))
