"""Kubeconfigs on the console's machine, read by the official client and used with a real server."""

import base64
import copy
import json
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kubernetes.certificates import Certificates
from tests.kubernetes.control_plane import ControlPlane

from hekla.backends.base import BackendError
from hekla.backends.kubernetes import access, keys, login
from hekla.backends.kubernetes.api import Api, ApiError, Json
from hekla.backends.kubernetes.async_client import AsyncClient
from hekla.backends.kubernetes.keys import KeyRefused

SECRET = "abcdefgh-the-token"
GOOD: Json = {
    "current-context": "a",
    "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {"token": SECRET}}],
}
NAMESPACES = "/api/v1/namespaces"
PLUGIN = """#!{python}
import json, os, pathlib
folder = pathlib.Path({folder!r})
calls = folder / "calls"
calls.write_text(calls.read_text() + "x" if calls.exists() else "x")
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
(folder / "info").write_text(json.dumps([info, os.environ.get("CONSOLE_ENV")]))
status = json.loads((folder / "status").read_text())
if status is None:
    raise SystemExit("no credentials today")
print(json.dumps({{"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}}))
"""


def changed(change: Callable[[Json], object]) -> str:
    document = copy.deepcopy(GOOD)
    change(document)
    return yaml.safe_dump(document)


def user(**fields: object) -> str:
    return changed(lambda all_: all_["users"][0].update(user=fields))


def cluster(**fields: object) -> str:
    return changed(lambda all_: all_["clusters"][0]["cluster"].update(fields))


_OIDC = {"name": "oidc", "config": {"id-token": "a.b.c", "idp-issuer-url": "https://127.0.0.1:1"}}
REFUSED = {
    "a user that is a word": (changed(lambda all_: all_["users"][0].update(user=SECRET)), ""),
    "a cluster that is a word": (changed(lambda all_: all_["clusters"][0].update(cluster=SECRET)), ""),
    "contexts that are words": (changed(lambda all_: all_.update(contexts=[SECRET])), ""),
    "a document that is a word": (SECRET, ""),
    "a document that is a list": (f"[{SECRET}]", ""),
    "a token of two lines": (user(token=f"{SECRET}\n{SECRET}"), ""),
    "a token of odd letters": (user(token=f"{SECRET}é"), ""),
    "a server that has no number": (cluster(server="https://x:y"), "address"),
    "no https": (cluster(server="http://127.0.0.1:1"), "https"),
    "what goes on for ever": ("[" * 100_000, ""),
    "what is too long": (f"# {'x' * login.MAX_FILE_BYTES}\n{yaml.safe_dump(GOOD)}", "1024 KiB"),
    "a server that is not checked": (cluster(**{"insecure-skip-tls-verify": True}), "does not verify"),
    "another's name": (user(token=SECRET, **{"as": "root"}), "“as”"),
    "a proxy of another kind": (cluster(**{"proxy-url": "socks5://127.0.0.1:1"}), "http or https"),
    "a provider that the client does not know": (user(**{"auth-provider": {"name": "azure"}}), "azure"),
    "a provider that is not checked": (user(**{"auth-provider": _OIDC}), "idp-certificate-authority"),
    "a file that is not there": (user(**{"tokenFile": "nowhere"}), ""),
    "a certificate that is none": (user(**{"client-certificate-data": base64.b64encode(b"x").decode()}), ""),
    "a program that is not there": (
        user(exec={"command": "./nowhere", "apiVersion": "client.authentication.k8s.io/v1"}),
        "no credentials",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_unusable_file_is_refused_with_a_reason_and_without_its_content(case: str, tmp_path: Path) -> None:
    text, reason = REFUSED[case]
    with pytest.raises(KeyRefused) as refusal:
        access.from_kubeconfig(write(tmp_path, text))
    assert "mine" in str(refusal.value)
    assert reason in str(refusal.value)
    assert SECRET not in str(refusal.value)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyRefused, match="Cannot read the kubeconfig"):
        access.from_kubeconfig(tmp_path / "nowhere")


def test_token_may_end_with_a_line_feed(tmp_path: Path) -> None:
    found = access.from_kubeconfig(write(tmp_path, user(token=f"{SECRET}\n")))
    assert found.header() == {"Authorization": f"Bearer {SECRET}"}


def test_user_name_and_password_are_sent_as_basic_authentication(tmp_path: Path) -> None:
    found = access.from_kubeconfig(write(tmp_path, user(username="ada", password="lovelace")))
    assert found.header() == {"Authorization": f"Basic {base64.b64encode(b'ada:lovelace').decode()}"}


def write(folder: Path, content: str | Json) -> Path:
    path = folder / "mine"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def can_read(found: access.Access) -> bool:
    """Whether both clients are accepted."""
    api, client = Api(found), AsyncClient(found)

    async def read(path: str) -> None:
        await client.get(path)

    try:
        client.run_all(read, [NAMESPACES])
        return bool(api.get(NAMESPACES)["items"])
    finally:
        api.close()
        client.close()


# Contexts


def test_context_is_selected_by_name(control_plane: ControlPlane, tmp_path: Path) -> None:
    document = control_plane.kubeconfig("nobody's")
    document["contexts"].append({"name": "admin@test", "context": {"cluster": "test", "user": "admin"}})
    document["users"].append({"name": "admin", "user": {"token": control_plane.token}})
    path = write(tmp_path, document)
    assert can_read(access.from_kubeconfig(path, "admin@test"))
    with pytest.raises(ApiError):
        can_read(access.from_kubeconfig(path))
    with pytest.raises(KeyRefused):
        access.from_kubeconfig(path, "nowhere")


# Exec plugins


class Plugin:
    """An exec plugin, and a kubeconfig with its relative path."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.folder = folder
        program = folder / "plugin"
        program.write_text(PLUGIN.format(python=sys.executable, folder=str(folder)))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        document = plane.kubeconfig()
        how = {"command": "./plugin", "apiVersion": "client.authentication.k8s.io/v1", "provideClusterInfo": True}
        document["users"][0]["user"] = {"exec": {**how, "env": [{"name": "CONSOLE_ENV", "value": "set"}]}}
        self.path = write(folder, document)

    def returns(self, expires_in: float | None = None, **status: str) -> None:
        if expires_in is not None:
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + expires_in))
            status["expirationTimestamp"] = at
        (self.folder / "status").write_text(json.dumps(status or None))

    @property
    def calls(self) -> int:
        return len((self.folder / "calls").read_text())

    @property
    def info(self) -> Any:
        return json.loads((self.folder / "info").read_text())


@pytest.fixture
def plugin(control_plane: ControlPlane, tmp_path: Path) -> Plugin:
    return Plugin(control_plane, tmp_path)


@pytest.fixture
def no_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens are checked at each request."""
    monkeypatch.setattr(access, "_RENEW_SECONDS", 0.0)
    monkeypatch.setattr(login, "_REFRESH_CHECK_SECONDS", 0.0)


def test_plugin_runs_once_for_all_requests(control_plane: ControlPlane, plugin: Plugin) -> None:
    plugin.returns(3600, token=control_plane.token)
    assert can_read(access.from_kubeconfig(plugin.path))
    assert can_read(access.from_kubeconfig(plugin.path))
    assert plugin.calls == 1
    info, environment = plugin.info
    assert info["spec"]["cluster"]["server"] == control_plane.url
    assert environment == "set"


def test_expired_token_is_refreshed_by_the_plugin(control_plane: ControlPlane, plugin: Plugin, no_delays: None) -> None:
    plugin.returns(-1, token="expired")
    found = access.from_kubeconfig(plugin.path)
    plugin.returns(3600, token=control_plane.token)
    assert can_read(found)
    calls = plugin.calls
    assert can_read(found)
    assert plugin.calls == calls


def test_plugin_with_short_lived_tokens_does_not_run_for_each_request(
    control_plane: ControlPlane, plugin: Plugin
) -> None:
    plugin.returns(30, token=control_plane.token)
    found = access.from_kubeconfig(plugin.path)
    for _ in range(3):
        assert can_read(found)
    assert plugin.calls == 1


def test_token_without_expiry_is_renewed_after_a_rejection(
    control_plane: ControlPlane, plugin: Plugin, no_delays: None
) -> None:
    plugin.returns(token="revoked")
    found = access.from_kubeconfig(plugin.path)
    with pytest.raises(ApiError):
        can_read(found)
    plugin.returns(token=control_plane.token)
    assert can_read(found)


def test_client_certificate_of_the_plugin_is_used_and_renewed(
    control_plane: ControlPlane, plugin: Plugin, no_delays: None
) -> None:
    certificates = Certificates(control_plane.ca.parent)
    for group, is_let_in in (("people", False), ("system:masters", True)):
        certificate, key = certificates.client("ada", group)
        plugin.returns(clientCertificateData=certificate, clientKeyData=key)
        found = access.from_kubeconfig(plugin.path)
        if is_let_in:
            found.reject(found.login)
            assert can_read(found)
        else:
            with pytest.raises(ApiError, match="ada"):
                can_read(found)


def test_failing_plugin_gives_an_error_and_a_log(plugin: Plugin, caplog: pytest.LogCaptureFixture) -> None:
    plugin.returns()
    with pytest.raises(KeyRefused, match="no credentials"):
        access.from_kubeconfig(plugin.path)
    assert "no credentials today" in caplog.text


def test_failing_refresh_keeps_the_token(control_plane: ControlPlane, plugin: Plugin, no_delays: None) -> None:
    plugin.returns(60, token=control_plane.token)
    found = access.from_kubeconfig(plugin.path)
    plugin.returns()
    assert can_read(found)


def test_plugin_in_a_pasted_kubeconfig_never_runs(plugin: Plugin) -> None:
    plugin.returns(token="x")
    with pytest.raises(KeyRefused, match="exec"):
        keys.from_kubeconfig(plugin.path.read_text())
    assert not (plugin.folder / "calls").exists()


# Files


def test_certificates_and_tokens_may_be_in_files_beside_the_kubeconfig(
    control_plane: ControlPlane, tmp_path: Path, no_delays: None
) -> None:
    document = control_plane.kubeconfig()
    (tmp_path / "ca.pem").write_text(control_plane.ca.read_text())
    (tmp_path / "token").write_text("expired")
    document["clusters"][0]["cluster"] = {"server": control_plane.url, "certificate-authority": "ca.pem"}
    document["users"][0]["user"] = {"tokenFile": "token"}
    found = access.from_kubeconfig(write(tmp_path, document))
    with pytest.raises(ApiError):
        can_read(found)
    (tmp_path / "token").write_text(f"{control_plane.token}\n")
    assert can_read(found)


def test_client_certificate_signs_in(control_plane: ControlPlane, tmp_path: Path) -> None:
    certificate, key = Certificates(control_plane.ca.parent).client("ada", "system:masters")
    document = control_plane.kubeconfig()
    data = {"client-certificate-data": certificate, "client-key-data": key}
    document["users"][0]["user"] = {name: base64.b64encode(text.encode()).decode() for name, text in data.items()}
    assert can_read(access.from_kubeconfig(write(tmp_path, document)))
    assert can_read(access.from_key(keys.from_kubeconfig(yaml.safe_dump(document))))


# Connections


def test_tls_server_name_is_used(control_plane: ControlPlane, tmp_path: Path) -> None:
    document = control_plane.kubeconfig()
    cluster_entry = document["clusters"][0]["cluster"]
    cluster_entry["server"] = control_plane.url.replace("127.0.0.1", "127.0.0.2")
    with _forwarder("127.0.0.2", control_plane) as port:
        cluster_entry["server"] = f"https://127.0.0.2:{port}"
        with pytest.raises(BackendError, match="does not answer"):
            can_read(access.from_kubeconfig(write(tmp_path, document)))
        cluster_entry["tls-server-name"] = "kubernetes.default.svc"
        assert can_read(access.from_kubeconfig(write(tmp_path, document)))


class Tunnel(ThreadingHTTPServer):
    """A proxy to the API server, with a password."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, plane: ControlPlane, password: str) -> None:
        super().__init__(("127.0.0.1", 0), _TunnelHandler)
        self.plane, self.requested = plane, list[str]()
        self.expected = f"Basic {base64.b64encode(password.encode()).decode()}" if password else None


class _TunnelHandler(BaseHTTPRequestHandler):
    server: Tunnel

    def do_CONNECT(self) -> None:
        self.server.requested.append(self.path)
        if self.headers.get("Proxy-Authorization") != self.server.expected:
            self.send_error(407)
            return
        self.send_response(200)
        self.end_headers()
        host, port = self.server.plane.url.removeprefix("https://").split(":")
        with socket.create_connection((host, int(port))) as upstream:
            back = threading.Thread(target=_copy, args=(upstream, self.connection), daemon=True)
            back.start()
            _copy(self.connection, upstream)
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Tests read `requested` instead."""


@pytest.mark.parametrize("password", ["", "ada:love%2Flace"])
def test_proxy_of_the_kubeconfig_is_used(control_plane: ControlPlane, tmp_path: Path, password: str) -> None:
    document = control_plane.kubeconfig()
    document["clusters"][0]["cluster"]["server"] = "https://kubernetes.default.svc:6443"
    with _serving(Tunnel(control_plane, password.replace("%2F", "/"))) as proxy:
        address = f"127.0.0.1:{proxy.server_port}"
        document["clusters"][0]["cluster"]["proxy-url"] = (
            f"http://{password}@{address}" if password else f"http://{address}"
        )
        assert can_read(access.from_kubeconfig(write(tmp_path, document)))
        assert set(proxy.requested) == {"kubernetes.default.svc:6443"}


def test_proxy_of_the_environment_is_used_unless_excluded(
    control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, control_plane.kubeconfig())
    with _serving(Tunnel(control_plane, "")) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.server_port}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.0/8")
        assert can_read(access.from_kubeconfig(path))
        assert not proxy.requested
        monkeypatch.setenv("NO_PROXY", "10.0.0.0/8")
        access._by_file.cache_clear()
        assert can_read(access.from_kubeconfig(path))
        assert len(proxy.requested) == 2


# An identity provider


def test_oidc_token_is_refreshed_and_the_new_refresh_token_is_stored(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    with _provider(control_plane) as issuer:
        expired, document = _jwt(exp=1), control_plane.kubeconfig()
        config = {"id-token": expired, "refresh-token": "first", "client-id": "hekla", "client-secret": SECRET}
        where = {"idp-issuer-url": issuer, "idp-certificate-authority": str(control_plane.ca)}
        document["users"][0]["user"] = {"auth-provider": {"name": "oidc", "config": {**config, **where}}}
        path = write(tmp_path, document)
        found = access.from_kubeconfig(path)
    assert found.header() == {"Authorization": f"Bearer {_jwt(exp=4_000_000_000)}"}
    stored = yaml.safe_load(path.read_text())["users"][0]["user"]["auth-provider"]["config"]
    assert stored["refresh-token"] == "second"


class _ProviderHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        host, port = self.server.server_address[:2]
        self._answer({"token_endpoint": f"https://{host}:{port}/token"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        assert "refresh_token=first" in body
        new = {"id_token": _jwt(exp=4_000_000_000), "refresh_token": "second"}
        self._answer({"access_token": "x", "token_type": "Bearer", **new})

    def _answer(self, body: Json) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


def _jwt(**claims: object) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({}, claims)]
    return ".".join([*parts, "signature"])


@contextmanager
def _provider(plane: ControlPlane) -> Iterator[str]:
    import ssl

    files = Certificates(plane.ca.parent)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _ProviderHandler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with _serving(server):
        yield f"https://127.0.0.1:{server.server_port}"


@contextmanager
def _serving(server: Any) -> Iterator[Any]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def _forwarder(host: str, plane: ControlPlane) -> Iterator[int]:
    """An address that forwards its connections to the API server."""
    listening = socket.create_server((host, 0))

    def accept() -> None:
        while True:
            try:
                near, _ = listening.accept()
            except OSError:
                return
            to, port = plane.url.removeprefix("https://").split(":")
            far = socket.create_connection((to, int(port)))
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=_copy, args=(one, other), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass
