"""The service account of Hekla's own pod, and logins that expire or are rejected while in use."""

import threading
import time
from pathlib import Path

import pytest
from kubernetes.client import Configuration
from kubernetes.config import incluster_config
from tests.kubernetes.control_plane import ControlPlane

from hekla.backends.base import BackendError
from hekla.backends.kubernetes import access, login
from hekla.backends.kubernetes.api import Api, ApiError
from hekla.backends.kubernetes.async_client import AsyncClient
from hekla.backends.kubernetes.deadline import Deadline
from hekla.backends.kubernetes.keys import ClusterKey

SECRET = "abcdefgh-the-token"
NAMESPACES = "/api/v1/namespaces"


@pytest.fixture
def account(control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the token and the certificate of the service account of Hekla's pod."""
    host, port = control_plane.url.removeprefix("https://").split(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    (tmp_path / "token").write_text(f"{control_plane.token}\n")
    (tmp_path / "ca.crt").write_text(control_plane.ca.read_text())
    return tmp_path


def test_in_cluster_console_uses_its_service_account(account: Path, tmp_path: Path) -> None:
    api = Api(access.find(tmp_path, "", None))
    assert api.get(NAMESPACES)["items"]
    api.close()


def test_service_account_without_certificate_is_refused(account: Path, tmp_path: Path) -> None:
    (account / "ca.crt").unlink()
    with pytest.raises(BackendError, match="service account"):
        access.find(tmp_path, "", None)


def test_rejected_service_account_is_read_again(
    account: Path, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "_RENEW_SECONDS", 0.0)
    (account / "token").write_text("expired")
    found = access.from_account()
    api, client = Api(found), AsyncClient(found)
    with pytest.raises(ApiError) as refusal:
        api.get(NAMESPACES)
    assert refusal.value.status == 401
    (account / "token").write_text(control_plane.token)
    assert api.get(NAMESPACES)["items"]
    (account / "token").write_text("expired")
    found.reject(found.login)
    client_saw = [error for _path, error in client.run_each(_read(client), [NAMESPACES], lambda: None)]
    assert isinstance(client_saw[0], ApiError)
    (account / "token").write_text(control_plane.token)
    client.run_all(_read(client), [NAMESPACES])
    api.close()
    client.close()


@pytest.mark.parametrize("content", [None, f"{SECRET}\n{SECRET}", f"{SECRET}é"])
def test_unusable_token_is_a_temporary_error_without_its_content(
    content: str | None, account: Path, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "_REFRESH_CHECK_SECONDS", 0.0)
    monkeypatch.setattr(incluster_config.InClusterConfigLoader, "_read_token_file", _read_at_once)
    api = Api(access.from_account())
    if content is None:
        (account / "token").unlink()
    else:
        (account / "token").write_text(content)
    with pytest.raises(BackendError) as refusal:
        api.get(NAMESPACES)
    assert SECRET not in str(refusal.value)
    (account / "token").write_text(control_plane.token)
    assert api.get(NAMESPACES)["items"]
    api.close()


_read_token_file = incluster_config.InClusterConfigLoader._read_token_file


def _read_at_once(loader: incluster_config.InClusterConfigLoader) -> None:
    """Removes the client's delay of a minute before it reads the file again."""
    loader._token_refresh_period = loader._token_refresh_period * 0
    _read_token_file(loader)


def test_key_is_not_in_repr_and_not_renewed() -> None:
    found = access.from_key(ClusterKey("https://127.0.0.1:1", token=SECRET))
    assert found.header() == {"Authorization": f"Bearer {SECRET}"}
    assert SECRET not in repr(found) + repr(found.login)
    before = found.login
    found.reject(before)
    found.header()
    assert found.login is before


def test_many_threads_sign_in_once() -> None:
    logins: list[int] = []

    def sign_in() -> login.Login:
        logins.append(1)
        return login.by_key(ClusterKey("https://127.0.0.1:1", token=SECRET))

    found = access.Access(sign_in, renewable=True)
    threads = [threading.Thread(target=found.header) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(logins) == 1


def test_hanging_refresh_keeps_the_token_and_finishes_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "_REFRESH_SECONDS", 0)
    monkeypatch.setattr(login, "_REFRESH_CHECK_SECONDS", 0.0)
    found = login.by_key(ClusterKey("https://127.0.0.1:1", token="old"))
    configuration, go_on, done = found.configuration, threading.Event(), threading.Event()

    def refresh(it: Configuration) -> None:
        go_on.wait(60)
        it.api_key["BearerToken"] = "Bearer new"
        it.refresh_api_key_hook = refresh  # as the client does
        done.set()

    configuration.refresh_api_key_hook = refresh
    refreshed = login.Login(configuration, found._context)
    with pytest.raises(BackendError, match="longer"):
        refreshed.header()
    go_on.set()
    assert done.wait(60)
    while configuration.refresh_api_key_hook is refresh:
        time.sleep(0.001)
    monkeypatch.setattr(login, "_REFRESH_CHECK_SECONDS", 60.0)
    assert refreshed.header() == {"Authorization": "Bearer new"}


def test_hanging_sign_in_starts_once_and_its_result_is_used() -> None:
    deadline, go_on, starts = Deadline(0), threading.Event(), []

    def work() -> str:
        starts.append(1)
        go_on.wait(60)
        return "done"

    for _ in range(3):
        with pytest.raises(BackendError, match="longer than 0 seconds"):
            deadline.run(work)
    assert len(starts) == 1
    go_on.set()
    deadline._seconds = 60
    assert deadline.run(work) == "done"


def _read(client: AsyncClient):
    async def read(path: str) -> None:
        assert (await client.get(path))["items"]

    return read
