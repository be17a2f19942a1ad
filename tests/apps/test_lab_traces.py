"""Files of other schedulers in the policy lab: uploaded, run and deleted, on pages, by REST and by command line."""

import gzip
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.apps.test_policy_lab import run_next, text

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.policy_lab import problems, services
from hekla.apps.policy_lab.models import LabRun, LabTrace
from hekla.cli import lab_uploads
from hekla.domain.errors import Forbidden, Refused
from hekla.engine.policy import DEFAULT_POLICY_TEXT
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]
HEAD = "JobID|User|Account|Partition|Submit|Start|End|State|NNodes|ReqTRES\n"
"""Columns of `sacct`."""
JOBS = HEAD + "".join(
    f"{at}|ann|bio|gpu|2026-01-01T00:00:0{at}|2026-01-01T0{at}:00:00|2026-01-01T0{at + 1}:00:00|COMPLETED|1|cpu=4\n"
    for at in range(6)
)
"""Six jobs of an hour, each as large as the only node."""


@pytest.fixture
def ada(people: People) -> Client:
    client = Client()
    client.force_login(people.ada, backend="django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def otto(people: People) -> User:
    """An operator."""
    facts: dict[str, Any] = {"username": "otto", "password": None, "platform_role": "operator"}
    return accounts.create_user(**facts, actor=PLATFORM, now=clock.now())


def upload(client: Client, content: bytes, form: str = "sacct") -> Any:
    file = SimpleUploadedFile("jobs.txt", content)
    return client.post(reverse("policy_lab:traces"), {"name": "January", "format": form, "file": file})


def test_a_trace_runs_in_an_experiment(people: People, ada: Client) -> None:
    """Six equal jobs of one hour on one node wait 0 to 5 hours, on two nodes 0, 0, 1, 1, 2 and 2."""
    assert "No traces yet" in text(ada, "policy_lab:traces")
    answer = upload(ada, gzip.compress((JOBS + "odd|line\n").encode()))
    trace = LabTrace.objects.get()
    assert answer["Location"] == reverse("policy_lab:trace", args=[trace.uid])
    page = text(ada, "policy_lab:trace", trace.uid)
    for words in ("January", "1 line of the trace could not be read.", "is line 8.", "Delete trace"):
        assert words in page
    form = f"{reverse('policy_lab:create')}?cluster=sim&trace={trace.uid}"
    page = ada.get(form).content.decode()
    assert "Weight of gpu" in page
    assert 'name="days"' not in page
    changes = {"title": "two nodes", "policy": DEFAULT_POLICY_TEXT, "weight-gpu": 1, "like": "n1", "count": 1}
    assert ada.post(form, changes).status_code == 302
    row = run_next()
    assert (row.state, row.problem, row.trace_name) == ("finished", "", "January")
    assert row.result is not None
    waits = {name: one["total"]["wait_mean"] / 3600 for name, one in row.result["columns"].items()}
    assert waits == pytest.approx({"recorded": 2.5, "unchanged": 2.5, "changed": 1.0}, abs=0.01)
    page = text(ada, "policy_lab:detail", row.uid)
    assert "The jobs of the trace run on the present nodes of the cluster." in page
    assert "Times without a zone are read as UTC." in page
    assert "Predicted start times" not in page
    assert "January" in text(ada, "policy_lab:list")
    assert ada.post(reverse("policy_lab:delete_trace", args=[trace.uid])).status_code == 302
    assert not LabTrace.objects.exists()
    assert "January" in text(ada, "policy_lab:detail", row.uid)
    assert set(LoggedEvent.objects.filter(subject=f"lab-trace:{trace.uid}").values_list("kind", flat=True)) == {
        "LabTraceUploaded",
        "LabTraceDeleted",
    }


@pytest.mark.parametrize(
    ("content", "form", "words"),
    [
        (b"a|b\n1|2\n", "sacct", "Line 1: the file has no column JobID."),
        (HEAD.encode() + b"1|ann|x\n", "sacct", "The first problem is in line 2."),
        (HEAD.encode() + b"x" * 200_000, "sacct", "Line 2 is too long."),
        (b'[{\n"jobid": }]', "philly", "Line 2: the file is no JSON"),
        (b"{}", "philly", "The file is no list of jobs."),
        (gzip.compress(b"\0" * (services.MAX_TRACE_BYTES + 1)), "sacct", "The file has more than 16 MiB."),
        (b"\x1f\x8bno gzip", "sacct", "The file is no gzip file"),
        (b"x" * (services.MAX_TRACE_BYTES + 1), "sacct", "The file has more than 16 MiB."),
    ],
)
def test_other_files_are_refused_with_the_line(
    people: People, ada: Client, content: bytes, form: str, words: str
) -> None:
    answer = upload(ada, content, form)
    assert answer.status_code == 200
    assert words in answer.content.decode()
    assert not LabTrace.objects.exists()


def test_only_its_owner_and_admins_delete_a_trace(people: People, ada: Client, otto: User) -> None:
    upload(ada, JOBS.encode())
    trace = LabTrace.objects.get()
    with pytest.raises(Forbidden):
        services.delete_trace(trace, user=otto, now=clock.now())
    client = Client()
    client.force_login(otto, backend="django.contrib.auth.backends.ModelBackend")
    page = text(client, "policy_lab:trace", trace.uid)
    assert "New experiment" in page
    assert "Delete trace" not in page
    assert client.post(reverse("policy_lab:delete_trace", args=[trace.uid])).status_code == 403
    row = services.start(
        people.cluster, title="", starts_at=trace.starts_at, ends_at=trace.ends_at, policy=DEFAULT_POLICY_TEXT,
        change={}, user=otto, now=clock.now(), trace=trace,
    )  # fmt: skip
    with pytest.raises(Refused):
        services.delete_trace(trace, user=people.ada, now=clock.now())
    LabTrace.objects.all().delete()
    assert run_next().problem_facts == {"code": "trace_deleted"}
    row.refresh_from_db()
    assert problems.sentence(row) == "Its trace was deleted."


def test_traces_by_rest_and_command_line(
    people: People, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rest = APIClient()
    rest.force_authenticate(people.ada)
    traces = reverse("api:v1:lab_traces")
    body = {"name": "big", "format": "sacct", "content": HEAD + JOBS.partition("\n")[2].replace("cpu=4", "cpu=400")}
    found = rest.post(traces, body, format="json")
    assert (found.status_code, found.json()["queues"], found.json()["owner"]) == (201, ["gpu"], "ada")
    odd = ("9|" + "x" * 50_000 + "\n") * 30
    large = rest.post(traces, {**body, "content": JOBS + odd}, format="json")  # other bodies have 1 MiB at most
    assert (large.status_code, large.json()["notes"]["unreadable"]) == (201, 30)
    assert rest.delete(reverse("api:v1:lab_trace", args=[large.json()["uid"]])).status_code == 204
    assert rest.post(traces, {**body, "content": "x" * 8 * 2**20}, format="json").status_code == 413
    assert rest.post(traces, {**body, "format": "excel"}, format="json").status_code == 400
    wrong = rest.post(traces, {**body, "content": "a|b\n"}, format="json")
    assert (wrong.status_code, "Line 1" in wrong.content.decode()) == (400, True)
    experiments, uid = reverse("api:v1:experiments"), found.json()["uid"]
    period = {"starts_at": "2026-01-01T00:00:00Z", "ends_at": "2026-01-02T00:00:00Z"}
    for more in ({}, {"trace": uid, **period}, {"trace": uid, "change": {"queues": {"default": {"weight": 2}}}}):
        assert rest.post(experiments, {"cluster": "sim", **more}, format="json").status_code == 400
    wanted = {"cluster": "sim", "trace": uid, "change": {"queues": {"gpu": {"weight": 2}}}}
    assert rest.post(experiments, wanted, format="json").status_code == 201
    assert run_next().problem_facts == {"code": "trace_fits_nowhere"}
    assert rest.delete(reverse("api:v1:lab_trace", args=[uid])).status_code == 204

    class Calls:
        """The command's client, without a server."""

        def post(self, _path: str, body: dict[str, Any]) -> Any:
            return rest.post(traces, body, format="json").json()

        def get(self, _path: str, **_query: object) -> Any:
            return rest.get(traces).json()

        def delete(self, path: str) -> None:
            rest.delete(f"/api/v1/{path}")

    monkeypatch.setattr(lab_uploads, "client_of", lambda _choice: Calls())
    file = tmp_path / "jobs.txt"
    file.write_text(JOBS + "odd\n")
    lab_uploads.upload.callback.__wrapped__(None, file, "sacct", "", as_json=False)
    out = capsys.readouterr().out
    assert "6 jobs, 6 pods" in out
    assert "the first is line 8" in out
    lab_uploads.list_traces.callback.__wrapped__(None, 50, as_json=True)
    (stored,) = json.loads(capsys.readouterr().out)
    assert stored["name"] == "jobs.txt"
    lab_uploads.delete_trace.callback.__wrapped__(None, stored["uid"])
    assert not LabTrace.objects.exists()
    packed = {"name": "odd", "format": "sacct", "content": b64encode(b"\x1f\x8b\x08no").decode()}
    assert rest.post(traces, packed, format="json").status_code == 400


@pytest.mark.parametrize(
    ("stored", "sentence"),
    [
        ("Its process ended with status 3.", "Its process ended with status 3."),
        ("It took more than 30 minutes.", "It took more than 30 minutes. Choose a shorter period."),
        ("drf failed at job_order: KeyError: 'a'", "drf failed at job_order: KeyError: 'a'"),
        ("queues: no such thing", "The experiment cannot run: queues: no such thing"),
    ],
)
def test_problems_of_earlier_versions_have_a_sentence_of_today(stored: str, sentence: str) -> None:
    assert problems.sentence(LabRun(problem=stored)) == sentence
