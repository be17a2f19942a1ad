"""The policy lab from the form to the result: rows of jobs run again, on pages, by REST and on the command line."""

import sys
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import NodeFacts
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.forecasts.models import Forecast
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.policy_lab import services
from hekla.apps.policy_lab.models import LabRun
from hekla.apps.policy_lab.problems import LabProblem
from hekla.cli import lab as command
from hekla.controller import policy_lab as experiments
from hekla.domain.errors import Refused
from hekla.domain.formats import load
from hekla.engine.policy import DEFAULT_POLICY_TEXT
from hekla.lib import clock
from hekla.simulation import policy_lab
from hekla.simulation.lab import experiment
from hekla.simulation.lab.experiment import Experiment, FinishedRun, LabColumn
from hekla.simulation.lab.simulated_run import Progress
from hekla.simulation.recorded_workload import recorded_workload

__all__ = ["db", "people", "shared_people"]
JOBS = 6
DIGITS = Path(__file__).parents[2] / "platform" / "examples" / "digits" / "job.yaml"
HOUR = timedelta(hours=1)


@pytest.fixture
def began(people: People) -> datetime:
    """Six jobs that each filled the only node for an hour, one after another, two days ago."""
    at = clock.now().replace(microsecond=0) - timedelta(days=2)
    LoggedEvent.objects.filter(kind="NodeChanged").update(at=at - timedelta(days=1))
    task = {"name": "main", "command": ["true"], "resources": {"cpu": "4"}}
    for number in range(JOBS):
        job = people.submit(f"job-{number}", tasks=[task])
        start = at + number * HOUR
        times = {"started_at": start, "finished_at": start + HOUR}
        Job.objects.filter(pk=job.pk).update(submitted_at=at + timedelta(seconds=number), phase="completed", **times)
        Pod.objects.create(
            job=job, task="main", index=0, attempt=1, version=1, slot=number, address="127.0.0.1", node="n1",
            phase="succeeded", created_at=at, bound_at=start, **times,
        )  # fmt: skip
    return at


@pytest.fixture
def ada(people: People) -> Client:
    client = Client()
    client.force_login(people.ada, backend="django.contrib.auth.backends.ModelBackend")
    return client


def one_by_one(wanted: Experiment, progress: Progress) -> Mapping[LabColumn, FinishedRun]:
    """The runs without processes, which would not see the rows of this transaction."""
    return {name: experiment.finish(wanted, name, progress) for name in experiment.columns(wanted)}


def run_next() -> LabRun:
    row = services.claim(now=clock.now())
    assert row is not None
    policy_lab.execute(row.uid, row.attempts, one_by_one)
    row.refresh_from_db()
    return row


def form(began: datetime, **more: object) -> dict[str, object]:
    end = (began + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%S")
    return {"title": "twice", "days": 2, "ends_at": end, "policy": DEFAULT_POLICY_TEXT, "weight-default": 1, **more}


def text(client: Client, view: str, *keys: object) -> str:
    answer = client.get(reverse(view, args=keys))
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_workload_of_rows(people: People, began: datetime) -> None:
    found = recorded_workload(people.cluster, began - HOUR, began + 24 * HOUR, now=clock.now())
    assert [job.runs for job in found.jobs] == [((3_600_000,),)] * JOBS
    assert [job.history.started for job in found.jobs] == [
        round((began + at * HOUR).timestamp() * 1000) for at in range(JOBS)
    ]
    assert [node.name for node in found.state.nodes] == ["n1"]
    later = recorded_workload(people.cluster, began + 1.5 * HOUR, began + 24 * HOUR, now=clock.now())
    assert [dict(job.placed) for job in later.jobs] == [{0: "n1"}, *[{}] * 4]
    assert later.jobs[0].runs == ((1_800_000,),)
    assert later.jobs[0].history.finished is not None


def test_changes_of_nodes_after_the_period_hide_none_in_it(
    people: People, began: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an old period, most changes are after it."""

    def observe(name: str, hours: float) -> None:
        at = began + hours * HOUR
        clusters.observe_nodes(people.cluster, [NodeFacts(name, {"cpu": "4", "pods": "9"}, {})], now=at)

    observe("n2", 2)
    for number in range(3, 6):
        observe(f"n{number}", 40)
    found = recorded_workload(people.cluster, began, began + 24 * HOUR, now=clock.now())
    names = {one.name for one in found.changes}
    assert names >= {"n2", "n5"}
    monkeypatch.setattr("hekla.simulation.recorded_workload._MAX_EVENTS", len(found.changes) - 1)
    found = recorded_workload(people.cluster, began, began + 24 * HOUR, now=clock.now())
    assert {one.name for one in found.changes} == names - {"n3", "n4", "n5"}
    assert [node.name for node in found.state.nodes] == ["n1"]


def test_more_nodes_halve_the_wait(people: People, began: datetime, ada: Client) -> None:
    assert "No experiments yet" in text(ada, "policy_lab:list")
    assert "How many more" in text(ada, "policy_lab:create")
    answer = ada.post(reverse("policy_lab:create"), form(began, like="n1", count=1))
    row = LabRun.objects.get()
    assert answer["Location"] == reverse("policy_lab:detail", args=[row.uid])
    assert row.change["nodes"] == [{"like": "n1", "count": 1}]
    assert "Cancel experiment" in text(ada, "policy_lab:state", row.uid)
    row = run_next()
    assert (row.state, row.problem) == ("finished", "")
    assert row.result is not None
    columns = row.result["columns"]
    waits = {name: one["total"]["wait_mean"] / 3600 for name, one in columns.items()}
    assert waits["recorded"] == pytest.approx(2.5, abs=0.01)
    assert waits["unchanged"] == pytest.approx(waits["recorded"], abs=0.01)
    assert waits["changed"] == pytest.approx(1.0, abs=0.01)
    assert row.result["trust"]["equal_binds"] == row.result["trust"]["binds"] == JOBS
    page = text(ada, "policy_lab:detail", row.uid)
    for words in ("put 6 of 6 pods on the recorded node (100.0 %)", "1 more nodes like n1", "The cluster is simulated"):
        assert words in page
    assert "lab-plot-3" in page
    assert "No start time was predicted" in page
    assert "Jobs that differ" not in page
    assert "twice" in text(ada, "policy_lab:list")
    assert ada.post(reverse("policy_lab:delete", args=[row.uid])).status_code == 302
    assert not LabRun.objects.exists()


def test_digits_jobs_do_not_wait_on_twice_the_nodes(people: People) -> None:
    """The node has room for ten pods, so three of these jobs run at a time, and three wait for an hour."""
    clusters.create_environment(name="digits", description="", requirements="", actor=PLATFORM, now=clock.now())
    spec = load(DIGITS.read_text()).spec
    at = clock.now().replace(microsecond=0) - timedelta(days=2)
    LoggedEvent.objects.filter(kind="NodeChanged").update(at=at - timedelta(days=1))
    for number in range(6):
        own = spec.model_copy(update={"name": f"digits-{number}"})
        job = jobs.submit(spec=own, tenant=people.lab, user=people.alice, now=clock.now())
        start = at + (number // 3) * HOUR
        times = {"started_at": start, "finished_at": start + HOUR}
        Job.objects.filter(pk=job.pk).update(submitted_at=at, phase="completed", **times)
        for slot, (task, index) in enumerate((("ps", 0), ("worker", 0), ("worker", 1))):
            Pod.objects.create(
                job=job, task=task, index=index, attempt=1, version=1, slot=3 * number + slot, address="127.0.0.1",
                node="n1", phase="succeeded", created_at=at, bound_at=start, **times,
            )  # fmt: skip
    change = {"nodes": [{"like": "n1", "count": 1}]}
    policy_lab.start(
        people.cluster,
        title="",
        starts_at=at - HOUR,
        ends_at=at + HOUR,
        change=change,
        user=people.ada,
        now=clock.now(),
    )
    row = run_next()
    assert row.result is not None, row.problem
    columns = {name: row.result["columns"][name] for name in ("recorded", "unchanged", "changed")}
    assert [one["total"]["wait_mean"] / 3600 for one in columns.values()] == pytest.approx([0.5, 0.5, 0], abs=0.01)
    assert [one["makespan"] for one in columns.values()] == pytest.approx([2, 2, 1], abs=0.01)
    assert [one["total"]["slowdown"] for one in columns.values()] == pytest.approx([1.5, 1.5, 1], abs=0.01)
    assert [one["total"]["evictions"] for one in columns.values()] == [0, 0, 0]
    assert row.result["trust"]["equal_binds"] == row.result["trust"]["binds"] == 18


def test_form_names_what_is_wrong_and_changes_queues(people: People, began: datetime, ada: Client) -> None:
    answer = ada.post(reverse("policy_lab:create"), form(began, count=3, policy="actions: 7"))
    assert "Choose which nodes." in answer.content.decode()
    answer = ada.post(reverse("policy_lab:create"), form(began, policy="actions: 7"))
    assert answer.status_code == 200
    changes = {"weight-default": 3, "limit-default": "cpu=2", "policy": "actions: allocate\n", "removed": "n1"}
    assert ada.post(reverse("policy_lab:create"), form(began, **changes)).status_code == 302
    row = LabRun.objects.get()
    assert row.change["queues"] == {"default": {"weight": 3, "capability": {"cpu": "2"}}}
    assert row.change["remove_nodes"] == ["n1"]
    page = text(ada, "policy_lab:detail", row.uid)
    assert "Weight of queue default: 3" in page


def test_predicted_starts_and_differing_jobs_are_on_the_page(people: People, began: datetime, ada: Client) -> None:
    for number, job in enumerate(Job.objects.order_by("pk")):
        start = began + number * HOUR
        latest = None if number == 0 else start + HOUR if number < JOBS - 1 else start - HOUR / 2
        Forecast.objects.create(job=job, made_at=began, earliest_at=latest and start - HOUR, latest_at=latest)
    Pod.objects.filter(job__name="job-2").update(node="gone")
    ada.post(reverse("policy_lab:create"), form(began))
    row = run_next()
    assert row.result is not None
    assert row.result["forecasts"] == {"unknown": 1, "cases": 5, "held": 4, "early": 0, "late": 1}
    page = text(ada, "policy_lab:detail", row.uid)
    assert "4 of 5 jobs that waited started within their predicted range (80.0 %)." in page
    assert "Jobs that differ" in page
    assert "It was decided at the same moment as something else." in page


def test_problems_are_in_the_language_of_the_reader(people: People, ada: Client) -> None:
    row = start(people)
    assert services.claim(now=clock.now()) is not None
    services.fail(row.uid, 1, LabProblem("process_killed", {"signal": 9}), now=clock.now())
    row.refresh_from_db()
    assert row.problem_facts == {"code": "process_killed", "signal": 9}
    assert "was ended by signal 9" in text(ada, "policy_lab:detail", row.uid)
    assert "was ended by signal 9" in text(ada, "policy_lab:list")
    LabRun.objects.update(problem_facts={"code": "of a later version"})
    assert row.problem in text(ada, "policy_lab:detail", row.uid)


def test_rest_and_command_line(people: People, began: datetime, capsys: pytest.CaptureFixture[str]) -> None:
    rest = APIClient()
    rest.force_authenticate(people.ada)
    body: dict[str, Any] = {"cluster": "sim", "starts_at": began - HOUR, "ends_at": began + 24 * HOUR}
    for change in ({"queues": {"nowhere": {"weight": 2}}}, {"colour": 1}, {"policy": "actions: 1"}):
        assert rest.post(reverse("api:v1:experiments"), {**body, "change": change}, format="json").status_code == 400
    late = {**body, "starts_at": body["ends_at"]}
    assert rest.post(reverse("api:v1:experiments"), late, format="json").status_code == 400
    answer = rest.post(reverse("api:v1:experiments"), body, format="json")
    assert answer.status_code == 201
    uid = answer.json()["uid"]
    run_next()
    found = rest.get(reverse("api:v1:experiment", args=[uid])).json()
    assert set(found["result"]["columns"]) == {"recorded", "unchanged"}
    command.print_result(found["result"])
    printed = capsys.readouterr().out
    assert "The unchanged run bound 6 of 6 pods as recorded (100.0%)." in printed
    assert [one["state"] for one in rest.get(reverse("api:v1:experiments")).json()] == ["finished"]
    assert rest.post(reverse("api:v1:experiment_cancel", args=[uid])).status_code == 409
    assert rest.delete(reverse("api:v1:experiment", args=[uid])).status_code == 204


def start(people: People, **more: object) -> LabRun:
    now = clock.now()
    values: dict[str, Any] = {"starts_at": now - HOUR, "ends_at": now, "policy": "", "change": {}, "title": "", **more}
    return services.start(people.cluster, **values, user=people.ada, now=now)


def test_experiments_are_bounded_and_begin_again(people: People) -> None:
    rows = [start(people) for _ in range(services.MAX_TO_DO)]
    with pytest.raises(Refused):
        start(people)
    now = clock.now()
    first = services.claim(now=now)
    assert first is not None
    assert first.pk == rows[0].pk
    assert services.claim(now=now) is None
    later = now + services.SILENCE + timedelta(seconds=1)
    again = services.claim(now=later)
    assert again is not None
    assert (again.pk, again.attempts) == (first.pk, 2)
    assert not services.finish(first.uid, 1, {}, now=later)
    assert services.beat(first.uid, 2, 0.5, now=later)
    third = services.claim(now=later + services.SILENCE * 2)
    assert third is not None
    assert third.pk == rows[1].pk
    first.refresh_from_db()
    assert first.state == "failed"


def test_a_watched_process_counts_as_alive_while_it_reads(people: People) -> None:
    """Reading a large workload takes longer than a process may be silent."""
    start(people)
    row = services.claim(now=clock.now() - 2 * services.SILENCE)
    assert row is not None
    assert experiments._goes_on(row, time.monotonic() + 60)
    assert services.claim(now=clock.now()) is None
    services.cancel(row, user=people.ada, now=clock.now())
    assert not experiments._goes_on(row, time.monotonic() + 60)


def test_a_process_that_fails_and_one_that_is_not_wanted(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    row = start(people)
    monkeypatch.setattr(experiments, "_command", lambda _row: [sys.executable, "-c", "raise SystemExit(3)"])
    experiments.run_waiting()
    row.refresh_from_db()
    assert (row.state, row.problem) == ("failed", "Its process ended with status 3.")
    row = start(people)
    monkeypatch.setattr(experiments, "_command", lambda _row: [sys.executable, "-c", "import time; time.sleep(60)"])
    monkeypatch.setattr(experiments, "_goes_on", lambda *_facts: False)
    monkeypatch.setattr(experiments, "MAX_SECONDS", 0.0)
    began = time.monotonic()
    experiments.run_waiting()
    assert time.monotonic() - began < 10
    row.refresh_from_db()
    assert row.state == "failed"
    assert "minutes" in row.problem
