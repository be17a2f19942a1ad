"""The console of a measurement, a pod with the program of `pod_server.py`, and the sessions with its ports."""

import http.client
import json
import re
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from hekla.bench import whole
from hekla.bench.proxy.requests import Endpoint
from hekla.bench.whole import RunningConsole
from hekla.cli.client import Client, Failure

SOCKETS_OF_A_SESSION = 50
"""The proxy allows a session 64 connections to its pod."""
_START_SECONDS = 120.0
_PROGRAM = Path(__file__).parent / "pod_server.py"
_FIELD = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')
_WEB = "hekla: web"


@dataclass(frozen=True, slots=True)
class ProxyBench:
    """`direct`, `proxied`: where each port of the pod is reached. `cookie`: of an admin. `pod_id`: of its row."""

    console: RunningConsole
    direct: Sequence[Endpoint]
    proxied: Sequence[Endpoint]
    cookie: str
    pod_id: int

    @property
    def web_pid(self) -> int:
        """The process of the proxy. Raises Failure."""
        for pid, cost in self.console.costs().items():
            if cost.name == _WEB:
                return pid
        raise Failure("The web process of the console is not found.")

    @property
    def host(self) -> str:
        """The host and port of the console."""
        return urlsplit(self.console.link).netloc


@contextmanager
def place(ports: int) -> Iterator[ProxyBench]:
    """Start a console with a pod that listens on so many ports, and end both afterwards. Raises Failure."""
    with whole.new_folder() as folder, whole.console(folder) as console:
        url = urlsplit(console.link)
        token = (folder / "cli-token").read_text().strip()
        with Client(f"{url.scheme}://{url.netloc}", token) as client:
            job = _submit(client, ports)
            try:
                pod, numbers = _listening(client, job)
                opener = _signed_in(console.link)
                direct = [Endpoint(pod["address"], number, f"{pod['address']}:{number}") for number in numbers]
                proxied = [_enter(client, job, number, int(url.port or 80)) for number in numbers]
                yield ProxyBench(console, direct, proxied, *_of_terminal(opener, url.netloc, job))
            finally:
                client.abort(job)
                client.wait(job, timeout=_START_SECONDS)


def _submit(client: Client, ports: int) -> str:
    """The uid of the job."""
    task = {"name": "main", "command": ["python", "pod_server.py", str(ports)], "grace_seconds": 1}
    files = {_PROGRAM.name: _PROGRAM.read_text()}
    document = {"name": "bench-proxy", "tasks": [task | {"resources": {"cpu": "100m"}}], "files": files}
    return str(client.post("jobs", document)["job"]["uid"])


def _listening(client: Client, job: str) -> tuple[dict[str, Any], list[int]]:
    """The pod and the ports of its program, as soon as it listens. Raises Failure."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        found: Any = client.job(job)
        if found["is_final"]:
            raise Failure(f"The pod did not start: {found['message'] or found['reason']}")
        if found["pods"] and found["pods"][0]["phase"] == "running":
            line = next(client.logs(job), "")
            if line.endswith("]"):
                return found["pods"][0], json.loads(line)
        time.sleep(0.2)
    raise Failure("The pod did not start.")


def _enter(client: Client, job: str, number: int, port: int) -> Endpoint:
    """Where a port of the pod is reached by a new session, with its cookie. Raises Failure."""
    request = {"task": "main", "index": 0, "tool": "port", "port": number}
    session = client.post(f"jobs/{job}/sessions", request)
    url = urlsplit(client.post(f"jobs/{job}/sessions/{session['uid']}/url", {})["url"])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", f"{url.path}?{url.query}", headers={"Host": url.netloc})
    cookie = connection.getresponse().headers["Set-Cookie"]
    connection.close()
    if not cookie:
        raise Failure("A session could not be entered.")
    return Endpoint("127.0.0.1", port, url.netloc, cookie.partition(";")[0])


def _signed_in(link: str) -> tuple[urllib.request.OpenerDirector, CookieJar]:
    """A browser that has used the console's first link."""
    jar = CookieJar()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    page = opener.open(link, timeout=30).read().decode()
    field = _FIELD.search(page)
    if field is None:
        raise Failure("The sign-in link has no form.")
    opener.open(link, urlencode({"csrfmiddlewaretoken": field[1]}).encode(), timeout=30).read()
    return opener, jar


def _of_terminal(signed_in: tuple[urllib.request.OpenerDirector, CookieJar], host: str, job: str) -> tuple[str, int]:
    """The cookies of the browser, and the id of the pod, which the page of its job names. Raises Failure."""
    opener, jar = signed_in
    page = opener.open(f"http://{host}/jobs/{job}/", timeout=30).read().decode()
    found = re.search(r"/pods/(\d+)/", page)
    if found is None:
        raise Failure("The page of the job names no pod.")
    return "; ".join(f"{one.name}={one.value}" for one in jar), int(found[1])
