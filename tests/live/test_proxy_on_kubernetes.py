"""A port of a pod on a real API server, opened in the browser: HTTP and websockets through the console's proxy.

The kubelets of the test cluster connect all ports of all pods to one local port, where a tool listens here.
"""

import hashlib
import http.client
import json
import socket
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.controller.conftest import World, one_machine, world
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.plugin import grant_in_namespace
from tests.live.test_tools import browser
from tests.support import tool_server
from tests.support.served import served
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.workbench import services as workbench
from hekla.apps.workbench.models import ToolSession
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import PodPhase
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock
from hekla.live.proxy import admissions
from hekla.live.proxy.hosts import SessionHosts

__all__ = ["browser", "one_machine", "world"]
pytestmark = [pytest.mark.kubernetes, pytest.mark.parametrize("world", ["kubernetes"], indirect=True)]
PORT = 8888


def test_port_of_a_pod_is_reached_until_the_pod_ends(
    world: World,
    browser: Client,
    small_cluster: ControlPlane,
    granted_namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admissions, "LOOK_EVERY_SECONDS", 0.2)
    monkeypatch.setattr(admissions, "VALID_SECONDS", 0.2)
    task = {"name": "main", "command": ["sleep", "1000"], "ports": {"web": PORT}}
    spec = JobSpec.parse({"name": "served", "tasks": [task]})
    job = services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: Pod.objects.filter(job=job, phase=PodPhase.RUNNING).exists())

    with served(SessionHosts(None)) as (port,):
        host, cookie = enter(browser, job, port)
        refused = request(port, host, "/", cookie)
        assert (refused.status, b"until its operator applies rights-connections.yaml" in refused.read()) == (502, True)
        grant_in_namespace(small_cluster, "rights-connections.yaml", granted_namespace)
        closed = request(port, host, "/", cookie)  # no tool listens yet
        assert (closed.status, b"Nothing answers on port 8888" in closed.read()) == (502, True)
    with served(SessionHosts(None), tool_server.application, last_port=small_cluster.port_inside) as (port, _tool):
        host, cookie = enter(browser, job, port)
        found = json.loads(request(port, host, "/headers?a=b", cookie).read())
        assert (found["path"], found["query"]) == ("/headers", "a=b")
        assert [value for name, value in found["headers"] if name in ("host", "cookie")] == [f"localhost:{PORT}"]
        data = bytes(range(256)) * 12_000
        uploaded = request(port, host, "/upload", cookie, method="POST", body=data)
        assert uploaded.read() == b"%d %s" % (len(data), hashlib.sha256(data).hexdigest().encode())
        with connect(
            f"ws://{host}/echo",
            origin=f"http://{host}",  # type: ignore[arg-type]
            additional_headers={"Cookie": cookie},
            sock=socket.create_connection(("127.0.0.1", port)),
        ) as opened:
            opened.send("hi")
            assert opened.recv(10) == "echo hi"
            opened.send(b"x" * 300_000)
            assert opened.recv(10) == b"x" * 300_000
            services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
            world.reconcile_until(lambda: not Pod.objects.filter(job=job, phase=PodPhase.RUNNING).exists())
            with pytest.raises(ConnectionClosed) as ended:
                opened.recv(10)
        assert ended.value.rcvd is not None
        assert ended.value.rcvd.code == 1001
        assert request(port, host, "/headers", cookie).status == 403
    world.reconcile_until(lambda: Pod.objects.get(job=job).is_final)
    assert workbench.end_with_pods(now=clock.now()) == 1
    assert ToolSession.objects.get().end_reason == "pod"


def enter(browser: Client, job: Job, port: int) -> tuple[str, str]:
    """The host of the session with the port of the pod, and the cookie of its origin."""
    place = reverse("api:v1:job_sessions", args=[job.uid])
    body = {"task": "main", "tool": "port", "port": PORT}
    opened = browser.post(place, body, content_type="application/json")
    assert opened.status_code in (200, 201), opened.content
    address = reverse("api:v1:job_session_url", args=[job.uid, opened.json()["uid"]])
    url = browser.post(address, content_type="application/json", headers={"host": f"localhost:{port}"}).json()["url"]
    host, _, path = url.removeprefix("http://").partition("/")
    entered = request(port, host, f"/{path}")
    assert entered.status == 303, entered.read()
    return host, entered.headers["set-cookie"].partition(";")[0]


def request(
    port: int, host: str, path: str, cookie: str = "", *, method: str = "GET", body: Any = None
) -> http.client.HTTPResponse:
    """The response to a request as a page of the session makes it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"host": host, "cookie": cookie, "origin": f"http://{host}"}
    connection.request(method, path, body=body, headers=headers)
    return connection.getresponse()
