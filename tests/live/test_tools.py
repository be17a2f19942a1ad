"""Tools that Hekla starts in pods: a stand-in for JupyterLab in a real pod, through REST, pages and the proxy."""

import http.client
import json
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from tests.controller.conftest import World, one_machine, world
from tests.support.served import served

from hekla.apps.audit.sentences import sentence
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.workbench import selectors
from hekla.apps.workbench import services as workbench
from hekla.apps.workbench.models import ToolSession
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import PodPhase
from hekla.domain.tools import Tool
from hekla.lib import clock
from hekla.live.proxy import admissions
from hekla.live.proxy.hosts import SessionHosts
from hekla.workbench import tools
from hekla.workbench.pod_script import MARK

__all__ = ["one_machine", "world"]
pytestmark = pytest.mark.parametrize("world", ["local"], indirect=True)

TOOL = """
import http.server, os, subprocess, sys
subprocess.Popen(["sleep", "1000"], start_new_session=True)  # as kernels and terminals are
options = dict(word[2:].partition("=")[::2] for word in sys.argv[1:])
if os.path.exists("broken"):
    sys.exit("the tool is broken")

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        is_right = self.headers.get("Authorization") == "token " + os.environ["JUPYTER_TOKEN"]
        body = b"in" if is_right else b"out"
        if self.path == "/arguments":
            body = open("/proc/self/cmdline", "rb").read()
        if self.path == "/client":
            import json
            from hekla.client import Client, magics
            magics.load_ipython_extension(type("Shell", (), {"register_magic_function": lambda *_words: None})())
            server = Client().server
            body = json.dumps([server.url, server.token, os.environ["HEKLA_SESSION_TASK"], magics.__file__]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

http.server.HTTPServer((options["ip"], int(options["port"])), Handler).serve_forever()
"""

EDITOR = """#!/usr/bin/env python3
import http.server, os, sys
options = dict(word[2:].partition("=")[::2] for word in sys.argv[1:])
demanded = "code-server-session=" + os.environ["HASHED_PASSWORD"]

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        cookies = self.headers.get("Cookie", "").split("; ")
        body = " ".join(["in" if demanded in cookies else "out", *cookies[:-1], *sys.argv[1:]])
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

http.server.HTTPServer((options["host"], int(options["port"])), Handler).serve_forever()
"""


def run_pod(world: World, files: dict[str, str]) -> Pod:
    task = {"name": "main", "command": ["sh", "-c", "exec sleep 1000"]}
    spec = JobSpec.parse({"name": "lab", "tasks": [task], "files": files})
    job = services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: Pod.objects.filter(job=job, phase=PodPhase.RUNNING).exists())
    return Pod.objects.select_related("job").get(job=job)


@pytest.fixture
def browser(world: World) -> Client:
    client = Client()
    client.force_login(world.alice, backend="django.contrib.auth.backends.ModelBackend")
    return client


def start(browser: Client, pod: Pod, tool: str) -> Any:
    address = reverse("api:v1:job_sessions", args=[pod.job.uid])
    return browser.post(address, {"task": "main", "tool": tool}, content_type="application/json")


def until_it_is_not_starting(browser: Client, pod: Pod, uid: str) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while True:
        found = browser.get(reverse("api:v1:job_session", args=[pod.job.uid, uid])).json()
        if found["state"] != "starting":
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


def test_tool_starts_in_the_pod_demands_its_secret_and_ends_with_the_session(
    world: World, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admissions, "VALID_SECONDS", 0.0)
    pod = run_pod(world, {"jupyterlab/__init__.py": "", "jupyterlab/__main__.py": TOOL})
    opened = start(browser, pod, "jupyterlab")
    assert (opened.status_code, opened.json()["owner"]) == (201, "alice"), opened.content
    session = until_it_is_not_starting(browser, pod, opened.json()["uid"])
    assert session["state"] == "ready"
    assert start(browser, pod, "jupyterlab").status_code == 200  # the same

    row = ToolSession.objects.get()
    with served(SessionHosts(None)) as (port,):
        host = f"{row.slug}.localhost:{port}"
        address = reverse("api:v1:job_session_url", args=[pod.job.uid, row.uid])
        url = browser.post(address, content_type="application/json", headers={"host": f"localhost:{port}"}).json()
        path = url["url"].removeprefix(f"http://{host}")
        entered = _get(port, host, path)
        assert (entered.status, entered.headers["location"]) == (303, "/lab")
        cookie = entered.headers["set-cookie"].partition(";")[0]
        assert _get(port, host, "/", cookie).read() == b"in"
        url, token, task, module = json.loads(_get(port, host, "/client", cookie).read())
        assert (url, task) == (settings.PUBLIC_URL, "main")
        assert f".hekla-tools/{row.uid.hex}/python/" in module
        assert _with_token(token, pod).json()["owner"] == "alice"
        assert selectors.secret_of(row).encode() not in _get(port, host, "/arguments", cookie).read()
        connection = http.client.HTTPConnection(pod.address, row.port, timeout=5)
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"out"  # of another pod on the machine, say

        ended = browser.delete(reverse("api:v1:job_session", args=[pod.job.uid, row.uid]))
        assert ended.status_code == 204
        with pytest.raises(ConnectionRefusedError):
            http.client.HTTPConnection(pod.address, row.port, timeout=5).connect()
        assert _get(port, host, "/", cookie).status == 403
    assert processes_of(row.uid.hex) == []
    assert _with_token(token, pod).status_code == 401
    assert not Path(module).exists()
    texts = [sentence(one, "lab").text for one in LoggedEvent.objects.filter(kind__startswith="Session").order_by("pk")]
    assert texts == [
        "alice opened JupyterLab in pod main-0 of lab.",
        "alice ended the session of alice with pod main-0 of lab.",
    ]


def test_code_server_demands_a_cookie_that_only_the_proxy_sends(world: World, browser: Client, tmp_path: Path) -> None:
    pod = run_pod(world, {"node_modules/.bin/code-server": EDITOR})
    missing = start(browser, pod, "code-server")  # the file cannot be executed yet
    assert (missing.status_code, "run “npm install code-server”" in missing.json()["detail"]) == (409, True)
    next(tmp_path.rglob("code-server")).chmod(0o755)
    uid = start(browser, pod, "code-server").json()["uid"]
    assert until_it_is_not_starting(browser, pod, uid)["state"] == "ready"
    row = ToolSession.objects.get(uid=uid)
    assert (row.label, row.token_id) == ("VS Code (code-server)", None)
    with served(SessionHosts(None)) as (port,):
        host = f"{row.slug}.localhost:{port}"
        address = reverse("api:v1:job_session_url", args=[pod.job.uid, uid])
        url = browser.post(address, content_type="application/json", headers={"host": f"localhost:{port}"}).json()
        entered = _get(port, host, url["url"].removeprefix(f"http://{host}"))
        assert (entered.status, entered.headers["location"]) == (303, "/")
        own = entered.headers["set-cookie"].partition(";")[0]
        answer = _get(port, host, "/", f"{own}; theme=dark; code-server-session=guess").read().decode()
    assert answer.startswith("in theme=dark --config=")
    assert f"--trusted-origins=localhost:{row.port} --disable-telemetry --disable-update-check" in answer
    connection = http.client.HTTPConnection(pod.address, row.port, timeout=5)
    connection.request("GET", "/")
    assert connection.getresponse().read().startswith(b"out ")  # of another pod on the machine, say
    browser.delete(reverse("api:v1:job_session", args=[pod.job.uid, uid]))
    assert processes_of(row.uid.hex) == []


def test_tools_that_do_not_start_say_why(world: World, browser: Client) -> None:
    pod = run_pod(world, {"jupyterlab/__init__.py": "", "jupyterlab/__main__.py": TOOL, "broken": ""})
    broken = start(browser, pod, "jupyterlab").json()
    found = until_it_is_not_starting(browser, pod, broken["uid"])
    assert (found["state"], found["message"].strip()) == ("ended", "the tool is broken")
    page = browser.get(reverse("workbench:session", args=[broken["uid"]])).content.decode()
    assert "the tool is broken" in page

    place = reverse("workbench:tools", args=[pod.job.uid, pod.pk])
    missing = browser.post(place, {"tool": "tensorboard"}, follow=True).content.decode()
    assert "This pod has no TensorBoard. Add “tensorboard” to the requirements" in missing

    port = {"task": "main", "tool": "port", "port": 8080}
    address = reverse("api:v1:job_sessions", args=[pod.job.uid])
    assert browser.post(address, port, content_type="application/json").status_code == 201
    assert [one["tool"] for one in json.loads(browser.get(address).content)] == ["port"]
    Pod.objects.filter(pk=pod.pk).update(phase="failed")
    assert json.loads(browser.get(address).content) == []
    assert workbench.end_with_pods(now=clock.now()) == 1
    assert workbench.end_with_pods(now=clock.now()) == 0
    assert Job.objects.count() == 1


def test_tool_whose_start_nobody_recorded_is_ended(world: World) -> None:
    pod = run_pod(world, {"jupyterlab/__init__.py": "", "jupyterlab/__main__.py": TOOL})
    session, _is_new = workbench.open_session(pod.pk, Tool.JUPYTERLAB, user=world.alice, now=clock.now())
    request = {"do": "start", "session": session.uid.hex, "tool": "jupyterlab", "secret": "x"}
    assert tools._run(session.pod, request)["port"]  # and then the process of the console was killed
    assert len(processes_of(session.uid.hex)) >= 1
    tools.look_after_starts(now=clock.now() + tools.START_LIMIT + timedelta(seconds=1))
    assert processes_of(session.uid.hex) == []
    session.refresh_from_db()
    assert session.end_reason == "tool"


def _with_token(token: str, pod: Pod) -> Any:
    address = reverse("api:v1:job", args=[pod.job.uid])
    return Client().get(address, headers={"authorization": f"Bearer {token}"})


def processes_of(session: str) -> list[psutil.Process]:
    """What the tool of a session has started on this machine, and itself."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(MARK) == session:
                found.append(process)
    return found


def _get(port: int, host: str, path: str, cookie: str = "") -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path, headers={"host": host, "cookie": cookie})
    return connection.getresponse()
