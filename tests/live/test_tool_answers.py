"""Tools that Hekla starts: what a hostile pod answers, and what happens meanwhile. The backend is a stand-in."""

import json
from collections.abc import Callable
from contextlib import ExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import make_people

from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs.models import Pod
from hekla.apps.workbench import entry, services
from hekla.apps.workbench.models import SessionState, ToolSession
from hekla.backends.streams import Output
from hekla.domain.errors import Refused
from hekla.domain.tools import Tool
from hekla.lib import clock
from hekla.pages.workbench import views
from hekla.workbench import tools

STARTED = b'{"port": 8888, "process": 7, "text": ""}'


class FakePod:
    """Answers each command by `answer`. `requests`: what was asked of it."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.answer: Callable[[dict[str, Any]], bytes] = lambda _request: STARTED

    exec = property(lambda self: self)
    port_forwarding = None
    console_url = staticmethod(str)
    exit_code = 0

    @asynccontextmanager
    async def run(self, _key: object, _command: object) -> Any:
        self._is_read = False
        yield self

    async def send(self, data: bytes) -> None:
        self.requests.append(json.loads(data))

    async def receive(self) -> Output | None:
        if self._is_read:
            return None
        self._is_read = True
        return Output(self.answer(self.requests[-1]))


@pytest.fixture
def pod(db: None, monkeypatch: pytest.MonkeyPatch) -> FakePod:
    found = FakePod()
    monkeypatch.setattr(tools, "get_backend", lambda **_facts: found)
    return found


@pytest.fixture
def session(pod: FakePod) -> ToolSession:
    """Of a pod on a Kubernetes cluster, whose key is in the database."""
    people = make_people()
    Cluster.objects.update(kind="kubernetes")
    common = {"job": people.submit("served"), "task": "main", "index": 0, "version": 1, "slot": 1}
    row = Pod.objects.create(**common, attempt=1, phase="running", created_at=clock.now())
    return services.open_session(row.pk, Tool.JUPYTERLAB, user=people.alice, now=clock.now())[0]


def test_tool_starts_on_a_kubernetes_cluster(pod: FakePod, session: ToolSession) -> None:
    tools.start(session, now=clock.now())
    session.refresh_from_db()
    assert (session.port, session.process, session.state) == (8888, 7, SessionState.STARTING)


def test_tool_of_a_session_that_ended_meanwhile_is_ended(pod: FakePod, session: ToolSession) -> None:
    ToolSession.objects.update(ended_at=clock.now(), end_reason="closed")
    with pytest.raises(Refused):
        tools.start(session, now=clock.now())
    assert [(one["do"], one.get("process")) for one in pod.requests] == [("start", None), ("end", 7)]


@pytest.mark.parametrize(
    "answer", [b"[" * 60000, b'{"text": "\\ud800\\u0000x"}', b'{"port": 1e9, "process": true}', b"\xff"]
)
def test_nonsense_of_a_pod_is_no_start(pod: FakePod, session: ToolSession, answer: bytes) -> None:
    pod.answer = lambda _request: answer
    with pytest.raises(Refused):
        tools.start(session, now=clock.now())
    session.refresh_from_db()
    assert session.state is SessionState.ENDED


def test_session_whose_start_was_cut_off_ends(pod: FakePod, session: ToolSession) -> None:
    tools.look(session, now=clock.now())
    assert session.state is SessionState.STARTING
    tools.look(session, now=clock.now() + tools.START_LIMIT + timedelta(seconds=1))
    assert session.state is SessionState.ENDED
    assert [(one["do"], one["process"]) for one in pod.requests] == [("end", 0)]  # whatever the pod has of it


@pytest.mark.parametrize("is_alive", [True, False])
def test_tools_that_start_for_too_long_end_also_if_nobody_looks(
    pod: FakePod, session: ToolSession, is_alive: bool
) -> None:
    tools.start(session, now=clock.now())
    pod.answer = lambda _request: json.dumps({"alive": is_alive, "text": "last words"}).encode()
    tools.look_after_starts(now=clock.now())
    session.refresh_from_db()
    assert session.state is SessionState.STARTING
    tools.look_after_starts(now=clock.now() + tools.START_LIMIT + timedelta(seconds=1))
    session.refresh_from_db()
    assert (session.state, session.message) == (SessionState.ENDED, "last words")
    assert [one["do"] for one in pod.requests] == ["start", "look", "end"]


def test_page_of_a_starting_tool_shows_what_it_has_written(pod: FakePod, session: ToolSession) -> None:
    tools.start(session, now=clock.now())
    pod.answer = lambda _request: b'{"alive": true, "text": "loading extensions"}'
    browser = Client()
    browser.force_login(session.owner, backend="django.contrib.auth.backends.ModelBackend")
    page = browser.get(reverse("workbench:session", args=[session.uid])).content.decode()
    assert "loading extensions" in page
    assert "does not answer on port 8888 yet" in page
    assert "After 3 minutes" in page


def test_few_pages_wait_for_tools_and_the_others_look_again_later(pod: FakePod, session: ToolSession) -> None:
    tools.start(session, now=clock.now())
    pod.answer = lambda _request: b'{"alive": true}'
    browser, page = Client(), reverse("workbench:session", args=[session.uid])
    browser.force_login(session.owner, backend="django.contrib.auth.backends.ModelBackend")
    for _time in range(5):  # each gives its turn back
        assert browser.get(f"{page}?go").headers["Refresh"] == "0"
    assert browser.get(page).headers["Refresh"] == "1"
    with ExitStack() as waiting:
        while waiting.enter_context(views._wait(is_useful=True)):
            pass
        assert browser.get(f"{page}?go").headers["Refresh"] == "1"


def test_tool_that_ended_by_itself_is_noticed_when_its_session_is_opened(pod: FakePod, session: ToolSession) -> None:
    tools.start(session, now=clock.now())
    services.note_ready(session, now=clock.now())
    pod.answer = lambda _request: b"nonsense"  # says nothing about it
    tools.look(session, now=clock.now())
    assert session.state is SessionState.READY
    pod.answer = lambda _request: b'{"alive": false, "text": "killed"}'
    tools.look(session, now=clock.now())
    assert (session.state, session.message) == (SessionState.ENDED, "killed")


def test_no_ticket_without_a_login_or_a_token(session: ToolSession) -> None:
    with pytest.raises(Refused):
        entry.issue_ticket(session, login=None, token=None)
