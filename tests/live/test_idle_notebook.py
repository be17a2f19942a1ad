"""The idle rule with a real JupyterLab in a pod. Its environment takes long to build."""

import http.client
import json
import socket
import uuid
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.controller import conftest
from tests.controller.conftest import World, one_machine, world
from tests.live.test_idle_sessions import RULE, recorded, watch
from tests.live.test_tools import browser, start, until_it_is_not_starting
from tests.support.served import served
from websockets.sync.client import connect

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.idleness import selectors, services
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Pod
from hekla.apps.workbench.models import ToolSession
from hekla.domain.idleness import MINUTE, IdleStep, KeepCause, Signal
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import PodPhase
from hekla.lib import clock
from hekla.live import activity
from hekla.live.proxy.hosts import SessionHosts

__all__ = ["browser", "one_machine", "world"]
pytestmark = [pytest.mark.thorough, pytest.mark.parametrize("world", ["local"], indirect=True)]
BUILD_SECONDS = 400.0


class Notebook:
    """Alice's browser in the session, behind the proxy."""

    def __init__(self, port: int, host: str) -> None:
        self.port, self.host, self.cookie = port, host, ""

    def ask(self, method: str, path: str, body: object = None) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"host": self.host, "cookie": self.cookie, "origin": f"http://{self.host}", "sec-fetch-mode": "cors"}
        connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
        return connection.getresponse()

    def run(self, kernel: str, code: str) -> None:
        """Run code in a tab that is closed once the kernel is busy."""
        header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "username": "", "session": "tab"}
        message = {"header": {**header, "version": "5.3"}, "parent_header": {}, "metadata": {}, "channel": "shell"}
        with connect(
            f"ws://{self.host}/api/kernels/{kernel}/channels?session_id=tab",
            origin=f"http://{self.host}",  # type: ignore[arg-type]
            additional_headers={"Cookie": self.cookie},
            sock=socket.create_connection(("127.0.0.1", self.port)),
        ) as tab:
            tab.send(json.dumps({**message, "content": {"code": code, "silent": False}, "buffers": []}))
            while True:
                found = json.loads(tab.recv(60))
                if found["content"].get("execution_state") == "busy" and found["parent_header"].get("session") == "tab":
                    return


def run_pod(world: World) -> Pod:
    packages = "jupyterlab\nipykernel"
    clusters.create_environment(name="lab", description="", requirements=packages, actor=PLATFORM, now=clock.now())
    task = {"name": "main", "command": ["sh", "-c", "exec sleep 1000"], "environment": "lab"}
    spec = JobSpec.parse({"name": "lab", "tasks": [task]})
    job = jobs.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: Pod.objects.filter(job=job, phase=PodPhase.RUNNING).exists())
    return Pod.objects.select_related("job").get(job=job)


def test_busy_kernel_survives_its_closed_tab_and_an_idle_one_is_warned_and_stopped(
    world: World, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conftest, "LAST_SECONDS", BUILD_SECONDS)
    monkeypatch.setattr(activity, "STORE_EVERY_SECONDS", 0.1)
    pod = run_pod(world)
    found: Any = until_it_is_not_starting(browser, pod, start(browser, pod, "jupyterlab").json()["uid"])
    assert found["state"] == "ready", found
    services.set_rule(world.tenant, RULE, user=world.alice, now=clock.now())
    session = ToolSession.objects.select_related("pod__job__tenant").get()
    with served(SessionHosts(None)) as (port,):
        notebook = Notebook(port, f"{session.slug}.localhost:{port}")
        address = reverse("api:v1:job_session_url", args=[pod.job.uid, session.uid])
        url = browser.post(address, content_type="application/json", headers={"host": f"localhost:{port}"}).json()[
            "url"
        ]
        entered = notebook.ask("GET", url.removeprefix(f"http://{notebook.host}"))
        notebook.cookie = entered.headers["set-cookie"].partition(";")[0]
        for path in ("/api/kernels?1", "/api/sessions?1", "/api/terminals?1", "/api/contents?content=1&hash=0&1"):
            assert notebook.ask("GET", path).status == 200
        kernel = json.loads(notebook.ask("POST", "/api/kernels", {"name": "python3"}).read())["id"]
        notebook.run(kernel, "import time; time.sleep(100000)")
        amounts = recorded(session, lambda amounts: amounts["requests"] > 0 and amounts["input"] > 0)
        assert (amounts["requests"], amounts["input"]) == (1, 1)
        begin = clock.now()
        watch(begin, 0, 20)
        verdict = selectors.activity_of(session, now=begin + 20 * MINUTE).verdict
        assert (verdict.step, verdict.cause, verdict.signal) == (IdleStep.KEEP, KeepCause.SIGNAL, Signal.KERNEL)
        notebook.ask("POST", f"/api/kernels/{kernel}/interrupt")
        while json.loads(notebook.ask("GET", f"/api/kernels/{kernel}").read())["execution_state"] != "idle":
            pass
    watch(begin, 21, 25)
    assert not LoggedEvent.objects.filter(kind="SessionIdleWarned").exists()
    watch(begin, 26, 31)
    assert LoggedEvent.objects.filter(kind="SessionIdleWarned").count() == 1
    watch(begin, 32, 33)
    session.refresh_from_db()
    assert session.end_reason == "idle"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((pod.address, session.port), timeout=5)
