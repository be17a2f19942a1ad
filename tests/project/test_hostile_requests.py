"""Requests that no browser of ours sends: they get a short answer, and at most one short line in the log."""

import logging
import time
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import AnonymousUser
from django.db import OperationalError
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People, as_, people
from tests.apps.test_submission import minimal_form
from tests.support.websocket import Socket

from hekla.apps.jobs.models import Job
from hekla.live import routing
from hekla.live.consumers import NOT_SIGNED_IN
from hekla.pages.job_forms.forms import MAX_TASK_ROWS
from hekla.project import celery

__all__ = ["as_", "people"]
MAX_LOG_CHARACTERS = 400


def assert_quiet(caplog: pytest.LogCaptureFixture, *, lines: int) -> None:
    """At most this many lines in the log, all short and without a traceback."""
    texts = [logging.Formatter("%(levelname)s %(name)s: %(message)s").format(record) for record in caplog.records]
    assert len(texts) <= lines, texts
    assert all(len(text) <= MAX_LOG_CHARACTERS and "\n" not in text for text in texts), texts


@pytest.mark.django_db
@pytest.mark.parametrize("host", ["elsewhere.example", "testserver,testserver", "a b", "\x00", "x" * 5000, ""])
@pytest.mark.parametrize("path", ["/", "/jobs/", "/accounts/sign-in/", "/api/v1/jobs", "/nowhere"])
def test_wrong_host_is_a_bad_request(path: str, host: str, caplog: pytest.LogCaptureFixture) -> None:
    for method in ("get", "post"):
        caplog.clear()
        answer = getattr(Client(), method)(path, headers={"host": host, "referer": "http://testserver/"})
        assert (answer.status_code, "Bad request" in answer.content.decode()) == (400, True)
        assert_quiet(caplog, lines=1)
    assert Client().get("/accounts/sign-in/").status_code == 200


def test_wrong_host_is_a_bad_request_for_signed_in_people(people: People, as_: Any) -> None:
    assert as_(people.alice).get("/", headers={"host": "elsewhere.example"}).status_code == 400
    assert as_(people.alice).get("/").status_code == 200


def _first_output(path: str, headers: list[tuple[bytes, bytes]], *frames: dict[str, Any]) -> list[dict[str, Any]]:
    """What the application sends to a browser that connects, sends these frames, and leaves."""

    async def visit() -> list[dict[str, Any]]:
        socket = Socket(routing.application, path, AnonymousUser(), headers=headers)
        await socket.send_input({"type": "websocket.connect"})
        for frame in frames:
            await socket.send_input({"type": "websocket.receive", **frame})
        outputs = []
        while not outputs or outputs[-1]["type"] != "websocket.close":
            outputs.append(await socket.receive_output(5))
        await socket.send_input({"type": "websocket.disconnect", "code": 1000})
        await socket.wait(3)
        return outputs

    return async_to_sync(visit)()


OURS = [(b"origin", b"http://localhost"), (b"host", b"localhost")]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "path", ["/", "/ws/", "/ws/live", "/ws/logs/x/", "/ws/logs/" + "9" * 5000 + "/", "/" + "a" * 9000]
)
def test_unknown_socket_is_closed(path: str, caplog: pytest.LogCaptureFixture) -> None:
    assert [one["type"] for one in _first_output(path, OURS)] == ["websocket.close"]
    assert_quiet(caplog, lines=1)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "origin",
    [
        *(b"http://[", b"http://elsewhere.example:999999", b"http://elsewhere.example", b"\xff"),
        *(b"http://localhost:9000", b"null", b""),
    ],
)
def test_socket_of_another_site_is_closed(origin: bytes, caplog: pytest.LogCaptureFixture) -> None:
    assert [one["type"] for one in _first_output("/ws/live/?view=jobs", [*OURS[1:], (b"origin", origin)])] == [
        "websocket.close"
    ]
    assert_quiet(caplog, lines=1)


@pytest.mark.django_db(transaction=True)
def test_known_socket_of_a_signed_out_person_is_closed_with_its_code() -> None:
    outputs = _first_output("/ws/live/?view=jobs", OURS)
    assert [(one["type"], one.get("code")) for one in outputs] == [
        ("websocket.accept", None),
        ("websocket.close", NOT_SIGNED_IN),
    ]


MANAGEMENT = ("tasks-TOTAL_FORMS", "tasks-INITIAL_FORMS", "files-TOTAL_FORMS", "files-INITIAL_FORMS")


@pytest.mark.parametrize("field", MANAGEMENT)
@pytest.mark.parametrize("number", ["999999999", "9" * 4000, "-1", "x", ""])
def test_number_of_rows_is_bounded(people: People, as_: Any, field: str, number: str) -> None:
    alice = as_(people.alice)
    alice.post(reverse("jobs:submit"), minimal_form(name=""))  # templates are compiled once
    began = time.process_time()
    page = alice.post(reverse("jobs:submit"), minimal_form(name="", **{field: number}))
    assert page.status_code in {200, 422}
    assert (time.process_time() - began < 2, len(page.content) < 1_000_000) == (True, True)
    assert not Job.objects.exists()


def test_form_with_all_of_its_rows_is_accepted(people: People, as_: Any) -> None:
    rows = {}
    for number in range(MAX_TASK_ROWS):
        task = {"name": f"task-{number}", "replicas": "1", "command": "true"}
        rows |= {f"tasks-{number}-{name}": value for name, value in task.items()}
    sent = minimal_form(**rows, **{"tasks-TOTAL_FORMS": str(MAX_TASK_ROWS)})
    as_(people.alice).post(reverse("jobs:submit"), sent)
    assert len(Job.objects.get().spec["tasks"]) == MAX_TASK_ROWS


@pytest.mark.django_db(transaction=True)  # a task closes a connection with an open transaction
def test_task_with_another_fault_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def deadlock(**_now: Any) -> None:
        assert not Job.objects.exists()
        raise OperationalError("deadlock detected")

    celery.app.loader.import_default_modules()
    monkeypatch.setattr("hekla.apps.flows.services.advance_all", deadlock)
    assert celery.app.tasks["hekla.flows.advance"].apply().state == "FAILURE"
    monkeypatch.undo()
    assert celery.app.tasks["hekla.flows.advance"].apply().state == "SUCCESS"
