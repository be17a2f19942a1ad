"""A terminal and a session through two web processes behind one address: entry, guests, keyboard, lost rights."""

import base64
import json
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.test import Client
from tests.controller.conftest import World, one_machine, world
from tests.support import tool_server
from tests.support.replicas import ADDRESS, Replicas, free_port
from tests.support.terminals import member
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Pod
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import PodPhase
from hekla.lib import clock
from hekla.live.consumers import TRY_AGAIN, UNKNOWN

__all__ = ["one_machine", "world"]
pytestmark = pytest.mark.parametrize("world", ["local"], indirect=True)
PATIENCE_SECONDS = 30.0


class Person:
    """Someone with a browser and a token."""

    def __init__(self, web: Replicas, user: User) -> None:
        browser = Client()
        browser.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        self._web = web
        self.cookie = f"{settings.SESSION_COOKIE_NAME}={browser.cookies[settings.SESSION_COOKIE_NAME].value}"
        self._token = accounts.create_token(user, name="test", lifetime=timedelta(hours=1), now=clock.now())

    def rest(self, replica: str, method: str, path: str, **facts: object) -> Any:
        """What REST answers there to this person."""
        body = json.dumps(facts) if method == "POST" else ""
        authorization = f"Bearer {self._token}"
        found = self._web.request(replica, method, f"/api/v1/{path}", body, Authorization=authorization)
        assert found.status < 300, (found.status, found.text)
        return json.loads(found.text) if found.text else None

    def enter(self, replica: str, url: str) -> tuple[str, str]:
        """The host of a session, and the cookie that its ticket leads to."""
        parts = urlsplit(url)
        found = self._web.request(replica, "GET", f"{parts.path}?{parts.query}", host=parts.netloc)
        assert found.status == 303, (found.status, found.text)
        return parts.netloc, found.cookie


class TerminalPage:
    """A page with a terminal. `text`: its output; `messages`: the last of each other type."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection, self.text = connection, ""
        self.messages: dict[str, Any] = {}

    def until(self, done: Callable[[], bool]) -> None:
        """Reads until the condition holds."""
        while not done():
            message = json.loads(self.connection.recv(PATIENCE_SECONDS))
            self.messages[message["type"]] = message
            if message["type"] == "output":
                self.text += base64.b64decode(message["data"]).decode(errors="replace")

    def say(self, kind: str, **facts: object) -> None:
        """Sends a message of the page."""
        self.connection.send(json.dumps({"type": kind, **facts}))


def close_code(connection: ClientConnection) -> int:
    """The code with which the console closes, whatever it sends before."""
    while True:
        try:
            connection.recv(PATIENCE_SECONDS)
        except ConnectionClosed as end:
            return int(end.rcvd.code) if end.rcvd else 0


def run_pod(world: World, port: int) -> Pod:
    """A running pod of Alice's, whose program serves the port."""
    script = f"import os\nfrom tool_server import serve\nserve(os.environ['HEKLA_POD_ADDRESS'], {port})\n"
    files = {"serve.py": script, "tool_server.py": Path(tool_server.__file__).read_text()}
    task = {"name": "main", "command": ["python", "serve.py"], "ports": {"web": port}}
    spec = JobSpec.parse({"name": "served", "files": files, "tasks": [task]})
    job = services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: Pod.objects.filter(job=job, phase=PodPhase.RUNNING).exists())
    return Pod.objects.select_related("job").get(job=job)


def test_terminal_and_session_are_one_through_both_replicas(world: World, tmp_path: Path) -> None:
    paul, port = member(world, "paul", "member"), free_port()
    pod = run_pod(world, port)
    with Replicas(tmp_path).ready() as web:
        alice, guest = Person(web, world.alice), Person(web, paul)
        _share_a_terminal(web, pod, alice, guest)
        _share_a_session(web, pod, port, alice, guest)


def _share_a_terminal(web: Replicas, pod: Pod, alice: Person, guest: Person) -> None:
    """The terminal lives in one process; pages that reach the other one connect again. REST works at both."""
    path = f"/ws/terminals/{pod.pk}/?language=en"
    job = f"jobs/{pod.job.uid}"
    with web.open("web-1", path, alice.cookie) as connection:
        owner = TerminalPage(connection)
        owner.until(lambda: "hello" in owner.messages)
        terminal = owner.messages["hello"]["terminal"]
        with web.open("web-2", path, alice.cookie) as elsewhere:
            assert close_code(elsewhere) == TRY_AGAIN
        offered = alice.rest("web-2", "POST", f"{job}/guests", terminal=terminal, person="paul", guest_role="peer")
        guest.rest("web-2", "POST", f"guests/{offered['uid']}/accept")
        with web.open("web-2", f"{path}&of={terminal}", guest.cookie) as elsewhere:
            assert close_code(elsewhere) == TRY_AGAIN
        with web.open("web-1", f"{path}&of={terminal}", guest.cookie) as theirs:
            peer = TerminalPage(theirs)
            peer.until(lambda: "hello" in peer.messages)
            peer.say("take")
            owner.until(lambda: _holder(owner) == "paul")
            peer.say("input", data="echo $((40 + 2)) of paul\r")
            owner.until(lambda: "42 of paul\r\n" in owner.text)
            peer.until(lambda: "42 of paul\r\n" in peer.text)
            alice.rest("web-2", "DELETE", f"guests/{offered['uid']}")
            assert close_code(theirs) == UNKNOWN
        owner.say("take")
        owner.say("input", data="echo $((50 + 5)) of alice\r")
        owner.until(lambda: "55 of alice\r\n" in owner.text)
        owner.say("end")
        owner.until(lambda: "ended" in owner.messages)
    with web.open("web-2", path, alice.cookie) as connection:
        again = TerminalPage(connection)
        again.until(lambda: "hello" in again.messages)
        assert again.messages["hello"]["terminal"] != terminal
        again.say("end")
        again.until(lambda: "ended" in again.messages)


def _holder(page: TerminalPage) -> str:
    """Who has the keyboard."""
    people = page.messages.get("people", {}).get("people", [])
    return next((one["name"] for one in people if one["holds"]), "")


def _share_a_session(web: Replicas, pod: Pod, port: int, alice: Person, guest: Person) -> None:
    """A ticket of one replica, an entry at the other, websockets at both; what ends at one ends at the other."""
    sessions = f"jobs/{pod.job.uid}/sessions"
    session = alice.rest("web-1", "POST", sessions, task="main", index=0, tool="port", port=port)["uid"]
    host, cookie = alice.enter("web-2", alice.rest("web-1", "POST", f"{sessions}/{session}/url")["url"])
    assert host.endswith(f".localhost:{ADDRESS.partition(':')[2]}")
    place = f"jobs/{pod.job.uid}/guests"
    offered = alice.rest("web-1", "POST", place, session=session, person="paul", guest_role="peer")["uid"]
    guest.rest("web-2", "POST", f"guests/{offered}/accept")
    _host, theirs = guest.enter("web-1", guest.rest("web-2", "POST", f"guests/{offered}/url")["url"])
    with (
        web.open("web-1", "/echo", cookie, host) as first,
        web.open("web-2", "/echo", cookie, host) as second,
        web.open("web-2", "/echo", theirs, host) as third,
    ):
        for number, one in enumerate((first, second, third)):
            one.send(f"hi {number}")
            assert one.recv(PATIENCE_SECONDS) == f"echo hi {number}"
        _until_here(alice, f"{sessions}/{session}/people", {"alice", "paul"})
        alice.rest("web-1", "DELETE", f"guests/{offered}")
        close_code(third)
        assert {web.request(name, "GET", "/", host=host, Cookie=theirs).status for name in web.ports} == {403}
        second.send("still")
        assert second.recv(PATIENCE_SECONDS) == "echo still"
        alice.rest("web-1", "DELETE", f"{sessions}/{session}")
        for one in (first, second):
            close_code(one)
    assert {web.request(name, "GET", "/", host=host, Cookie=cookie).status for name in web.ports} == {403}


def _until_here(person: Person, path: str, names: set[str]) -> None:
    """Waits until both replicas say that these people have the session open."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    for replica in ("web-1", "web-2"):
        while {one["username"] for one in person.rest(replica, "GET", path) if one["is_here"]} != names:
            assert time.monotonic() < deadline
            time.sleep(0.1)
