"""SIGKILL to any process around sessions, at random: no session is lost that should live, none lives that should not.

Each job has one pod with a server on a port, and a stand-in for JupyterLab that Hekla starts beside it. A person has
both open in a browser, whose cookies stay the same all the time.

The node of the cluster is the machine itself. Its loss kills the console's processes, the shims and the pods at once,
and the machine has another boot then. The database and Valkey go on here.
"""

import http.client
import json
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import psutil
import pytest
from tests.e2e.conftest import HeklaServer, free_port
from tests.e2e.test_backup import rest
from tests.live.test_tools import TOOL, processes_of
from tests.support.examples import EVERY, examples

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
SEED, JOBS = 20, 2 if EVERY == 1 else 1
ROLES = ("web", "control", "default")
KINDS = (*ROLES, "shim", "pod", "node") if EVERY == 1 else ("node",)
"""What is killed. The node takes all roles and all pods with it."""
ROUNDS = examples(200) if EVERY == 1 else len(KINDS)
REACHED_SECONDS = ENDED_SECONDS = 30.0
"""How long a session may take until it is reached again, and until it has ended with its pod."""
ROW_SECONDS = 75.0
"""How long its row may be open after that."""
LISTENING = "0A"


@dataclass
class Opened:
    """A session that is open in the browser. `address`, `port`: where its tool listens."""

    uid: str
    host: str
    cookie: str
    address: str
    port: int

    def status(self, server: HeklaServer) -> int:
        """Of a request by the proxy; 0 if the console does not answer."""
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        try:
            connection.request("GET", "/", headers={"Host": self.host, "Cookie": self.cookie})
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()

    def listens(self) -> bool:
        """Whether a server listens there. One on all addresses of the machine belongs to others."""
        number = int.from_bytes(socket.inet_aton(self.address), sys.byteorder)
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
        return any(row[1] == f"{number:08X}:{self.port:04X}" and row[3] == LISTENING for row in rows)


@dataclass
class Lab:
    """A job with its pod, and the sessions with it."""

    job: str
    sessions: list[Opened] = field(default_factory=list)

    def processes(self) -> list[psutil.Process]:
        """The shim of the pod, and the pod's first process."""
        for process in psutil.process_iter(["cmdline"]):
            if self.job.replace("-", "") in " ".join(process.info["cmdline"] or ()):
                return [process, *process.children()]
        raise AssertionError("no pod")


def test_sessions_live_exactly_as_long_as_their_pods(killed_server: HeklaServer) -> None:
    server = killed_server
    rng = random.Random(SEED)
    with rest(server) as client:
        labs = [_lab(server, client, f"lab-{number}") for number in range(JOBS)]
        ended: list[Opened] = []
        for number in range(ROUNDS):
            kind = KINDS[number % len(KINDS)]
            time.sleep(rng.uniform(0, 0.5))
            lost = _kill(server, kind, labs, rng.randrange(len(labs)))
            for lab in lost:
                _until_ended(server, lab, kind)
                ended += lab.sessions
            again = [_lab(server, client, f"lab-{JOBS + number}-{place}") for place in range(len(lost))]
            labs = [lab for lab in labs if lab not in lost] + again
            _until_reached(server, labs, kind)
        sessions = [one for lab in labs for one in lab.sessions]
        _audit(server, sessions, ended)
        for lab in labs:
            for one in lab.sessions:
                assert client.delete(f"/jobs/{lab.job}/sessions/{one.uid}").status_code == 204
        _audit(server, [], [one for one in ended + sessions if one not in _ports(sessions)])
        for lab in labs:
            client.post(f"/jobs/{lab.job}/actions", json={"action": "AbortJob"})


def _kill(server: HeklaServer, kind: str, labs: Sequence[Lab], chosen: int) -> Sequence[Lab]:
    """Kill something of this kind. Returns the labs whose pods end by that."""
    if kind in ROLES:
        os.kill(server.children()[kind], signal.SIGKILL)
        return []
    if kind != "node":
        labs[chosen].processes()[0 if kind == "shim" else 1].kill()
        return [labs[chosen]]
    victims = [process for lab in labs for process in lab.processes()]
    victims += [psutil.Process(pid) for role, pid in server.children().items() if role in ROLES]
    for lab in labs:
        (order,) = server.home.glob(f"local/*/pods/{lab.job.replace('-', '')}/*/order.json")
        order.write_text(json.dumps(json.loads(order.read_text()) | {"boot": "before"}))
    for process in victims:
        with suppress(psutil.NoSuchProcess):  # the kernel ends a pod with its shim
            process.kill()
    return [*labs]


def _ports(sessions: Sequence[Opened]) -> Sequence[Opened]:
    """Those with a port: the pod's own server goes on after them."""
    return sessions[::2]


def _lab(server: HeklaServer, client: httpx2.Client, name: str) -> Lab:
    port = free_port()
    files = {"jupyterlab/__init__.py": "", "jupyterlab/__main__.py": TOOL}
    command = ["sh", "-c", f"exec python -m http.server {port} --bind $HEKLA_POD_ADDRESS"]
    task = {"name": "main", "command": command, "resources": {"cpu": "100m"}, "grace_seconds": 1}
    policies = [{"events": ["PodFailed", "PodEvicted"], "action": "AbortJob"}]  # else another pod would listen there
    document = {"name": name, "tasks": [task], "files": files, "policies": policies}
    job = client.post("/jobs", json=document).json()["job"]["uid"]
    address = _until_running(client, job)
    lab = Lab(job)
    for target in ({"tool": "port", "port": port}, {"tool": "jupyterlab"}):
        place = f"/jobs/{job}/sessions"
        session = client.post(place, json={"task": "main", "index": 0, **target}).json()
        deadline = time.monotonic() + 60
        while session["state"] == "starting":
            assert time.monotonic() < deadline, session
            time.sleep(0.1)
            session = client.get(f"{place}/{session['uid']}").json()
        url = urlsplit(client.post(f"{place}/{session['uid']}/url", json={}).json()["url"])
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        connection.request("GET", f"{url.path}?{url.query}", headers={"Host": url.netloc})
        cookie = connection.getresponse().headers["Set-Cookie"].partition(";")[0]
        lab.sessions.append(Opened(session["uid"], url.netloc, cookie, address, session["port"]))
    return lab


def _until_running(client: httpx2.Client, job: str) -> str:
    """The address of the job's pod, once it runs."""
    deadline = time.monotonic() + 60
    while not (pods := [pod for pod in client.get(f"/jobs/{job}").json()["pods"] if pod["phase"] == "running"]):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return str(pods[0]["address"])


def _until_reached(server: HeklaServer, labs: Sequence[Lab], kind: str) -> None:
    deadline = time.monotonic() + REACHED_SECONDS
    for one in (one for lab in labs for one in lab.sessions):
        while (status := one.status(server)) != 200:
            assert time.monotonic() < deadline, (kind, status, server.read_log()[-4000:])
            time.sleep(0.1)


def _until_ended(server: HeklaServer, lab: Lab, kind: str) -> None:
    deadline = time.monotonic() + ENDED_SECONDS
    for one in lab.sessions:
        while (status := one.status(server)) != 403 or one.listens():
            assert time.monotonic() < deadline, (kind, status, one.listens(), server.read_log()[-4000:])
            time.sleep(0.1)


def _audit(server: HeklaServer, opened: Sequence[Opened], ended: Sequence[Opened]) -> None:
    """Rows, processes and listeners agree about what lives."""
    uids = {one.uid.replace("-", "") for one in opened}
    deadline = time.monotonic() + ROW_SECONDS
    while {uid for uid, is_open, _phase in server.operator(do="sessions") if is_open} != uids:
        assert time.monotonic() < deadline, server.operator(do="sessions")
        time.sleep(0.5)
    assert all(phase == "running" for _uid, is_open, phase in server.operator(do="sessions") if is_open)
    assert not {one.uid for one in ended if processes_of(one.uid.replace("-", ""))}
    assert not [one for one in ended if one.listens()]
    assert {one.status(server) for one in opened} <= {200}
    assert server.operator(do="audit") == "sound"
