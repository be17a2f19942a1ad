"""Stands in for a metrics server and for Prometheus: answers what it is set to.

The API server of the tests really asks it, as an aggregated API: through an APIService and a service that names this
machine. Only the measuring is simulated.
"""

import json
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.kubernetes.control_plane import ControlPlane, RequestRefused

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
_RESOURCES = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": f"{GROUP}/{VERSION}",
    "resources": [{"name": "nodes", "namespaced": False, "kind": "NodeMetrics", "verbs": ["get", "list"]}],
}
_SERVICES = "/api/v1/namespaces/kube-system/services"
_API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


class MetricsServer:
    """The usage of each node, as `{"cpu": "100m", "memory": "1Gi"}`; and for Prometheus the answer by metric."""

    def __init__(self) -> None:
        self.usage: dict[str, dict[str, str]] = {}
        self.prometheus: dict[str, dict[str, float]] = {}
        self.requests: list[str] = []
        self.tokens: set[str] = set()
        self.url = ""

    def answer(self, path: str) -> object | None:
        self.requests.append(path)
        parts = urlsplit(path)
        if parts.path == f"/apis/{GROUP}/{VERSION}":
            return _RESOURCES
        if parts.path == f"/apis/{GROUP}/{VERSION}/nodes":
            return {
                "kind": "NodeMetricsList",
                "apiVersion": f"{GROUP}/{VERSION}",
                "metadata": {},
                "items": self._items(),
            }
        if parts.path == "/api/v1/query":
            return self._result(parse_qs(parts.query)["query"][0])
        return None

    def _items(self) -> list[dict[str, Any]]:
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return [
            {"metadata": {"name": name}, "timestamp": at, "window": "20s", "usage": usage}
            for name, usage in self.usage.items()
        ]

    def _result(self, query: str) -> object:
        found = next((values for metric, values in self.prometheus.items() if metric in query), {})
        if wanted := re.search(r'instance="([^"]*)"', query):
            found = {name: value for name, value in found.items() if name == wanted[1]}
        result = [{"metric": _labels(name), "value": [0, str(value)]} for name, value in found.items()]
        return {"status": "success", "data": {"resultType": "vector", "result": result}}


def _labels(name: str) -> dict[str, str]:
    """Of a node, of a pod as `namespace/name`, or of a card as `node#number`."""
    node, mark, card = name.partition("#")
    if mark:
        return {"Hostname": node, "gpu": card}
    namespace, slash, pod = name.partition("/")
    return {"namespace": namespace, "pod": pod} if slash else {"instance": name}


@contextmanager
def metrics_server(plane: ControlPlane | None = None) -> Iterator[MetricsServer]:
    """A running server; with `plane`, by HTTPS with its certificate."""
    made = MetricsServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.tokens.add(self.headers.get("Authorization", ""))
            found = made.answer(self.path)
            body = json.dumps(found).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the tests look at `requests`."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if plane is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(plane.certificates.certificate, plane.certificates.key)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        made.url = f"http{'s' if plane else ''}://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="metrics server")
        thread.start()
        yield made
        server.shutdown()
        thread.join()


@contextmanager
def metrics_api(plane: ControlPlane) -> Iterator[MetricsServer]:
    """The API metrics.k8s.io of this control plane, until the end of the block."""
    with metrics_server(plane) as server:
        port = urlsplit(server.url).port
        service = {
            "metadata": {"name": "metrics-server"},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
        }
        api = {
            "metadata": {"name": f"{VERSION}.{GROUP}"},
            "spec": {
                "group": GROUP,
                "version": VERSION,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "insecureSkipTLSVerify": True,
                "service": {"namespace": "kube-system", "name": "metrics-server", "port": port},
            },
        }
        plane.request("POST", _SERVICES, service)
        plane.request("POST", _API_SERVICES, api)
        try:
            plane.wait_until(lambda: _is_served(plane))
            yield server
        finally:
            plane.request("DELETE", f"{_API_SERVICES}/{VERSION}.{GROUP}")
            plane.request("DELETE", f"{_SERVICES}/metrics-server")


def _is_served(plane: ControlPlane) -> bool:
    try:
        plane.request("GET", f"/apis/{GROUP}/{VERSION}/nodes")
    except RequestRefused:
        return False
    return True
