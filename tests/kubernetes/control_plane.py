"""A real Kubernetes API server on this machine, with simulated nodes, as ordinary processes of the test run.

etcd, the API server, the controllers and kwok listen only on 127.0.0.1 and keep everything in a temporary folder.
There is no scheduler: tests bind the pods. `stages.yaml` defines the behaviour of nodes and pods.
"""

import base64
import contextlib
import random
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx2
import yaml
from tests.kubernetes.certificates import Certificates

from hekla.launcher.embedded.child import spawn

HERE = Path(__file__).resolve().parent
READY_WITHIN_SECONDS = 120.0
STOPPED_WITHIN_SECONDS = 5.0
LOG_LINES = ("the first line", "the second line", "the last line")  # the log of every container
_PORTS = range(20000, 32000)  # below the kernel's range for outgoing connections
_DICE = random.SystemRandom()  # a seed that several workers share would give them the same ports
_CONTROLLERS = (
    "namespace", "serviceaccount", "serviceaccount-token", "root-ca-certificate-publisher", "garbage-collector",
    "pod-garbage-collector", "resourcequota", "job", "cronjob", "ttl-after-finished", "endpoints", "endpointslice",
    "replicaset", "deployment", "statefulset", "disruption", "clusterrole-aggregation", "node-lifecycle",
    "taint-eviction", "persistentvolumeclaim-protection", "resourceclaim",
    "persistentvolume-binder", "persistentvolume-protection",
)  # fmt: skip
_AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": ["hekla-tenants"]}, {"level": "None"}],
}
_ALLOCATABLE = {"cpu": "8", "memory": "32Gi", "pods": "110"}

Object = dict[str, Any]


class ControlPlaneFailed(Exception):
    """A part did not start or was not ready in time; the message has the end of its log."""


class RequestRefused(Exception):
    """The API server answered with an error: its HTTP `status`, `reason` and `message`."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status, self.reason, self.message = status, reason, message


@dataclass
class Part:
    """One program and its log."""

    name: str
    argv: Sequence[str | Path]
    log: Path
    last_signal: signal.Signals = signal.SIGTERM
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self, home: Path) -> None:
        """Start the program; a second start appends to the same log."""
        with self.log.open("ab") as output:
            # A HOME of its own hides the caller's kubeconfig. Less garbage collection saves a tenth of the CPU time, as
            # does a single core: threads on others are woken for each request.
            env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "TZ": "UTC", "GOGC": "400", "GOMAXPROCS": "1"}
            self.process = spawn(self.argv, output=output.fileno(), env=env, folder=home)

    def stop(self, number: signal.Signals | None = None) -> None:
        """Stop the program with `number`, by default `last_signal`; kill it after a timeout."""
        process, self.process = self.process, None
        if process is None:
            return
        process.send_signal(number or self.last_signal)
        try:
            process.wait(timeout=STOPPED_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def check(self) -> None:
        """Raise ControlPlaneFailed if the program has ended."""
        if self.process is not None and (code := self.process.poll()) is not None:
            raise ControlPlaneFailed(f"{self.name} ended with {code}:\n{self.tail()}")

    def tail(self) -> str:
        """The last 20 lines of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])


class ControlPlane:
    """The processes, and a client for them. `binaries`: the folder with the programs."""

    token = "token-of-the-admin"
    user_token = "token-of-the-user-hekla"
    tenants_token = "token-of-the-user-hekla-tenants"

    def __init__(self, binaries: Path) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="hekla-kubernetes-"))
        self._binaries = binaries
        self._ports = dict(zip(("etcd", "peer", "api", "controllers", "kwok", "inside"), _free_ports(6), strict=True))
        self.certificates = Certificates(self.home / "certificates")
        self._parts: dict[str, Part] = {}
        self._nodes = 0

    @property
    def url(self) -> str:
        """The address of the API server, which a restart does not change."""
        return f"https://127.0.0.1:{self._ports['api']}"

    @property
    def _store_readyz(self) -> str:
        return f"http://127.0.0.1:{self._ports['etcd']}/readyz"

    @property
    def port_inside(self) -> int:
        """The local port that all port-forwards of all pods connect to. Only tests listen there."""
        return self._ports["inside"]

    @property
    def ca(self) -> Path:
        """The PEM file of the authority of the API server's certificate."""
        return self.certificates.ca

    def kubeconfig(self, token: str | None = None) -> Object:
        """A kubeconfig for this token, by default the administrator's."""
        authority = base64.b64encode(self.ca.read_bytes()).decode()
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {"server": self.url, "certificate-authority-data": authority}}],
            "users": [{"name": "test", "user": {"token": token or self.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        }

    def start(self) -> None:
        """Start all processes and wait until they are ready. Raises ControlPlaneFailed, after it stopped them."""
        try:
            self._write_files()
            self.resume()
            limit = time.monotonic() + READY_WITHIN_SECONDS
            self._wait(lambda: self._exists("/api/v1/namespaces/default/serviceaccounts/default"), limit)
        except BaseException:
            self.stop()
            raise

    def suspend(self) -> None:
        """Stop the processes in reverse order; their data stays. An idle control plane uses 6 % of a core."""
        for part in reversed(self._parts.values()):
            part.stop()

    def resume(self) -> None:
        """Start the processes with the data that there is. Raises ControlPlaneFailed."""
        limit = time.monotonic() + READY_WITHIN_SECONDS
        self._launch(self._etcd(), limit, self._is_answering(self._store_readyz))
        self._launch(self._api_server(), limit, self._is_answering(f"{self.url}/readyz"))
        self._launch(self._controller_manager(), limit, self._is_answering(f"{self._local('controllers')}/healthz"))
        self._launch(self._kwok(), limit, self._is_answering(f"{self._local('kwok')}/healthz"))

    @property
    def is_suspended(self) -> bool:
        return all(part.process is None for part in self._parts.values())

    def stop(self) -> None:
        """Stop the processes, and remove their files."""
        self.suspend()
        if client := vars(self).pop("_client", None):  # missing if an early part failed to start
            client.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def kill_api_server(self) -> None:
        """Kill the API server, as in a crash."""
        self._parts["kube-apiserver"].stop(signal.SIGKILL)

    def start_api_server(self) -> None:
        """Start the API server again with the same address and data, and wait for it. Raises ControlPlaneFailed."""
        limit = time.monotonic() + READY_WITHIN_SECONDS
        self._launch(self._parts["kube-apiserver"], limit, self._is_answering(f"{self.url}/readyz"))

    def back_up_store(self) -> None:
        """Back up all data; the API server is down during the copy."""
        self._stop_store()
        shutil.copytree(self._file("etcd"), self._file("backup"))
        self._start_store()

    def restore_store(self) -> None:
        """Restore the backup: later changes are lost."""
        self._stop_store()
        shutil.rmtree(self._file("etcd"))
        self._file("backup").rename(self._file("etcd"))
        self._start_store()

    def _stop_store(self) -> None:
        self.kill_api_server()
        self._parts["etcd"].stop()

    def _start_store(self) -> None:
        limit = time.monotonic() + READY_WITHIN_SECONDS
        self._launch(self._parts["etcd"], limit, self._is_answering(self._store_readyz))
        self.start_api_server()

    def request(
        self,
        method: str,
        path: str,
        body: Object | list[Object] | None = None,
        *,
        content_type: str = "application/json",
        token: str | None = None,
    ) -> Object:
        """Send a request, by default as the administrator; the JSON of the answer. Raises RequestRefused."""
        answer: Object = self._ask(method, path, body, content_type, token).json()
        return answer

    def read_log(self, namespace: str, pod: str, *, token: str | None = None) -> str:
        """The log of the only container of a pod. Raises RequestRefused."""
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log"
        return self._ask("GET", path, None, "application/json", token).text

    def wait_until(self, holds: Callable[[], bool], seconds: float = 30.0) -> None:
        """Poll until the condition holds. Raises ControlPlaneFailed after the timeout."""
        self._wait(holds, time.monotonic() + seconds)

    def add_nodes(
        self, count: int, *, allocatable: Mapping[str, str] | None = None, labels: Mapping[str, str] | None = None
    ) -> list[str]:
        """Create `count` nodes and wait until they accept pods; their names. Raises ControlPlaneFailed."""
        names = [f"node-{self._nodes + number:04}" for number in range(1, count + 1)]
        self._nodes += count
        for name in names:
            self.request("POST", "/api/v1/nodes", _node(name, allocatable or _ALLOCATABLE, labels or {}))
        self.wait_until(lambda: set(names) <= self._usable_nodes(), READY_WITHIN_SECONDS)
        return names

    def remove_nodes(self, names: Sequence[str]) -> None:
        """Delete nodes; the controllers then delete their pods."""
        for name in names:
            self.request("DELETE", f"/api/v1/nodes/{name}")

    def _usable_nodes(self) -> set[str]:
        return {node["metadata"]["name"] for node in self.request("GET", "/api/v1/nodes")["items"] if _is_usable(node)}

    @cached_property
    def _client(self) -> httpx2.Client:
        trusted = ssl.create_default_context(cafile=str(self.ca))
        return httpx2.Client(base_url=self.url, verify=trusted, timeout=30.0, trust_env=False)

    def _ask(self, method: str, path: str, body: object, content_type: str, token: str | None) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {token or self.token}", "Content-Type": content_type}
        answer = self._client.request(method, path, json=body, headers=headers)
        if answer.is_error:
            raise _refusal(answer)
        return answer

    def _exists(self, path: str) -> bool:
        try:
            self.request("GET", path)
        except RequestRefused:
            return False
        return True

    def _local(self, name: str) -> str:
        return f"https://127.0.0.1:{self._ports[name]}"

    def _is_answering(self, url: str) -> Callable[[], bool]:
        def has_answered() -> bool:
            with contextlib.suppress(httpx2.TransportError):
                return self._client.get(url, headers={"Authorization": f"Bearer {self.token}"}).is_success
            return False

        return has_answered

    def _launch(self, part: Part, limit: float, is_ready: Callable[[], bool]) -> None:
        self._parts[part.name] = part
        part.start(self.home)
        self._wait(is_ready, limit, part)

    def _wait(self, holds: Callable[[], bool], limit: float, part: Part | None = None) -> None:
        while not holds():
            for started in self._parts.values():
                started.check()
            if time.monotonic() > limit:
                raise ControlPlaneFailed("not ready in time:\n" + self._tails(part))
            time.sleep(0.05)

    def _tails(self, part: Part | None) -> str:
        parts = [part] if part else list(self._parts.values())
        return "\n".join(f"{part.name}:\n{part.tail()}" for part in parts)

    @property
    def audit_log(self) -> Path:
        """The requests of the user `hekla-tenants`, one JSON object in each line."""
        return self._file("audit.log")

    def _write_files(self) -> None:
        self.certificates.make()
        self._file("tokens.csv").write_text(
            f'{self.token},admin,admin,"system:masters"\n'
            f'{self.user_token},hekla,hekla,"people"\n'
            f'{self.tenants_token},hekla-tenants,hekla-tenants,"people"\n'
        )
        self._file("kubeconfig").write_text(yaml.safe_dump(self.kubeconfig()))
        self._file("audit.yaml").write_text(yaml.safe_dump(_AUDIT))
        log = self._file("container.log")
        log.write_text("".join(f"2026-01-01T00:00:00.{n:09}Z stdout F {line}\n" for n, line in enumerate(LOG_LINES)))
        configuration = [_container_logs(log), _container_exec(self.home), _port_forwards(self.port_inside)]
        self._file("pretended.yaml").write_text(yaml.safe_dump_all(configuration))

    def _file(self, name: str) -> Path:
        return self.home / name

    def _part(self, name: str, *argv: str, last_signal: signal.Signals = signal.SIGTERM) -> Part:
        return Part(name, [self._binaries / name, *argv], self._file(f"{name}.log"), last_signal)

    def _etcd(self) -> Part:
        client, peer = (f"http://127.0.0.1:{self._ports[name]}" for name in ("etcd", "peer"))
        return self._part(
            "etcd",
            f"--data-dir={self._file('etcd')}",
            *(f"--listen-client-urls={client}", f"--advertise-client-urls={client}"),
            *(f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"),
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",  # the data need not survive the tests
            *("--heartbeat-interval=1000", "--election-timeout=10000"),  # there is no other member
            *("--auto-compaction-mode=periodic", "--auto-compaction-retention=5m"),
            "--quota-backend-bytes=4294967296",
            "--log-level=warn",
        )

    def _api_server(self) -> Part:
        return self._part(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._ports['etcd']}",
            *("--bind-address=127.0.0.1", f"--secure-port={self._ports['api']}", "--endpoint-reconciler-type=none"),
            *self._tls(),
            f"--client-ca-file={self.ca}",
            *(f"--token-auth-file={self._file('tokens.csv')}", "--authorization-mode=Node,RBAC"),
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.certificates.service_account_key}",
            f"--service-account-signing-key-file={self.certificates.service_account_key}",
            "--kubelet-preferred-address-types=InternalIP",  # names of simulated nodes do not resolve
            *("--max-requests-inflight=4000", "--max-mutating-requests-inflight=2000"),
            *("--enable-priority-and-fairness=false", "--profiling=false"),
            *(f"--audit-policy-file={self._file('audit.yaml')}", f"--audit-log-path={self.audit_log}"),
            last_signal=signal.SIGKILL,  # SIGTERM waits up to a minute for watches
        )

    def _controller_manager(self) -> Part:
        return self._part(
            "kube-controller-manager",
            f"--kubeconfig={self._file('kubeconfig')}",
            *("--bind-address=127.0.0.1", f"--secure-port={self._ports['controllers']}"),
            *self._tls(),
            *("--leader-elect=false", "--use-service-account-credentials=true", "--profiling=false"),
            f"--service-account-private-key-file={self.certificates.service_account_key}",
            f"--root-ca-file={self.ca}",
            *("--kube-api-qps=1000", "--kube-api-burst=2000"),
            "--controllers=" + ",".join(f"{name}-controller" for name in _CONTROLLERS),
        )

    def _kwok(self) -> Part:
        return self._part(
            "kwok",
            f"--kubeconfig={self._file('kubeconfig')}",
            "--manage-all-nodes=true",
            *(f"--config={HERE / 'stages.yaml'}", f"--config={self._file('pretended.yaml')}"),
            "--node-lease-duration-seconds=40",
            *(f"--server-address=127.0.0.1:{self._ports['kwok']}", f"--node-port={self._ports['kwok']}"),
            *self._tls(),
            *("--cidr=10.244.0.0/16", "--node-ip=127.0.0.1"),
        )

    def _tls(self) -> tuple[str, str]:
        return f"--tls-cert-file={self.certificates.certificate}", f"--tls-private-key-file={self.certificates.key}"


def _free_ports(count: int) -> list[int]:
    """Free ports outside the range of outgoing connections, so that they stay free while a server restarts."""
    found: list[int] = []
    while len(found) < count:
        port = _DICE.choice(_PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                found += [port] if port not in found else []
    return found


def _refusal(answer: httpx2.Response) -> RequestRefused:
    try:
        status = answer.json()
    except ValueError:
        return RequestRefused(answer.status_code, answer.reason_phrase, answer.text)
    return RequestRefused(answer.status_code, status.get("reason", ""), status.get("message", ""))


def _container_logs(file: Path) -> Object:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "ClusterLogs",
        "metadata": {"name": "all"},
        "spec": {"logs": [{"logsFile": str(file), "follow": False}]},
    }


def _container_exec(folder: Path) -> Object:
    """Configuration of kwok: commands in pods run on this machine."""
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "ClusterExec",
        "metadata": {"name": "all"},
        "spec": {"execs": [{"local": {"workDir": str(folder)}}]},
    }


def _port_forwards(port: int) -> Object:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "ClusterPortForward",
        "metadata": {"name": "all"},
        "spec": {"forwards": [{"target": {"port": port, "address": "127.0.0.1"}}]},
    }


def _node(name: str, allocatable: Mapping[str, str], labels: Mapping[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"allocatable": dict(allocatable), "capacity": dict(allocatable)},
    }


def _is_usable(node: Object) -> bool:
    """Whether the node is ready and without taints: the node-lifecycle controller removes the initial taint."""
    conditions = node["status"].get("conditions", [])
    is_ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    return is_ready and not node["spec"].get("taints")
