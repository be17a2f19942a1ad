"""No log is given up because it could not be read at once, and no machine that does not answer holds up the others."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
import urllib3
from tests.backends.conftest import Place

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
def cloud(make_place: Callable[[str], Place]) -> Place:
    return make_place("kubernetes")


def ended(place: Place, index: int = 0) -> PodKey:
    key = place.started(place.order(index))
    place.ended(key)
    return key


def deaf(patch: pytest.MonkeyPatch, error: Exception, *keys: PodKey) -> list[str]:
    """Logs of these pods cannot be read; what was asked for is noted."""
    at_once, one, asked = AsyncClient.text, Api.text, []

    def note(path: str) -> None:
        asked.append(path)
        if any(f"/{key.name}/" in path for key in keys):
            raise error

    async def text_at_once(self: AsyncClient, path: str, **params: str | int) -> bytes:
        note(path)
        return await at_once(self, path, **params)

    def text(self: Api, path: str, **params: str | int) -> bytes:
        note(path)
        return one(self, path, **params)

    patch.setattr(AsyncClient, "text", text_at_once)
    patch.setattr(Api, "text", text)
    return asked


@pytest.mark.kubernetes
@pytest.mark.parametrize("error", [AWAY, NO_ANSWER])
def test_a_log_that_cannot_be_read_now_is_read_later_and_holds_up_no_other(cloud, monkeypatch, error) -> None:
    first, second = ended(cloud, 0), ended(cloud, 1)
    log = cloud.log(first)
    monkeypatch.setattr(node_backoff, "RETRY_SECONDS", 0.0)
    with monkeypatch.context() as patch:
        deaf(patch, error, first)
        cloud.backend.forget([first, second])
        assert cloud.seen(first) is not None
        assert cloud.seen(second) is None
    cloud.backend.forget([first])
    assert cloud.seen(first) is None
    assert cloud.log(first) == log


@pytest.mark.kubernetes
def test_a_machine_that_does_not_answer_is_not_asked_for_every_log(cloud, monkeypatch) -> None:
    keys = [ended(cloud, index) for index in range(3)]
    with monkeypatch.context() as patch:
        asked = deaf(patch, NO_ANSWER, *keys)
        cloud.backend.forget(keys)
        cloud.backend.forget(keys)
    assert len(asked) == 1
    monkeypatch.setattr(node_backoff, "RETRY_SECONDS", 0.0)
    cloud.backend.forget(keys)
    assert cloud.backend.observe(None).pods == []


@pytest.mark.kubernetes
def test_a_machine_that_is_silent_for_long_is_given_up_and_the_log_says_so(cloud, monkeypatch) -> None:
    key = ended(cloud)
    monkeypatch.setattr(node_backoff, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(node_backoff, "GIVE_UP_SECONDS", 0.0)
    deaf(monkeypatch, AWAY, key)
    cloud.backend.forget([key])
    cloud.backend.forget([key])
    assert cloud.seen(key) is None
    assert "does not answer" in cloud.log(key)


@pytest.mark.kubernetes
def test_the_log_of_a_running_pod_that_cannot_be_read_now_is_not_taken_for_empty(cloud, monkeypatch) -> None:
    key = cloud.started(cloud.long())
    with monkeypatch.context() as patch:
        deaf(patch, AWAY, key)
        with pytest.raises(BackendError):
            cloud.backend.logs(key, offset=100, limit=10)


@pytest.mark.kubernetes
def test_nobody_waits_longer_for_a_dead_machine_than_a_controller_may_be_silent(cloud, monkeypatch) -> None:
    key = ended(cloud)
    connections = cloud.backend.parts.api.client.rest_client.pool_manager
    request, patience = connections.request, []

    def noted(*args, timeout: urllib3.Timeout, **more) -> urllib3.BaseHTTPResponse:
        patience.append(timeout.read_timeout)
        return request(*args, timeout=timeout, **more)

    with monkeypatch.context() as patch:
        patch.setattr(connections, "request", noted)
        cloud.log(key)
    assert patience[-1] < LIFETIME.total_seconds()


@pytest.mark.kubernetes
def test_forgetting_thousands_takes_no_longer_than_a_turn_can_wait(cloud, monkeypatch) -> None:
    keys = [ended(cloud, index) for index in range(2)]
    monkeypatch.setattr(module, "FORGET_PATIENCE_SECONDS", 0.0)
    cloud.backend.forget(keys)
    assert cloud.seen(keys[1]) is not None


@pytest.mark.kubernetes
def test_a_full_disk_loses_no_log_and_is_not_filled_further(cloud, monkeypatch) -> None:
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
    assert (cloud.seen(key), cloud.log(key)) == (None, log)


def test_what_was_drafted_of_a_log_counts_only_where_the_pod_is_gone_before_it_is_kept(tmp_path: Path) -> None:
    spool, stays, goes = Spool(tmp_path), PodKey("job", "main", 0, 1), PodKey("job", "main", 1, 1)
    for key in (stays, goes):
        spool.draft(key, b"a")
        spool.draft(key, b"ab")
        assert not spool.has(key), "a pod of which there is a log has run"
    spool.save(stays, b"abc")
    spool.promote_draft(stays)
    spool.promote_draft(goes)
    assert [spool.read(key, 0, 9).data for key in (stays, goes)] == [b"abc", b"ab"]
    assert [path.name for path in (tmp_path / "job").iterdir() if path.name.startswith(".")] == []
    spool.promote_draft(PodKey("job", "main", 2, 1))
    assert not spool.has(PodKey("job", "main", 2, 1))
