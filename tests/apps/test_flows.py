"""Flows and templates: progress of steps, probes, access and events."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.flows import port_checks, selectors, services, wake
from hekla.apps.flows.models import Flow, FlowStep, JobTemplate
from hekla.apps.flows.services.advancing import TRY_AGAIN_SECONDS
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.domain.errors import Forbidden, HeklaError, Invalid, NotFound, Refused
from hekla.domain.flows import FlowSpec, Probe
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]
TASK = {"name": "main", "command": ["true"], "resources": {"cpu": "1"}}
JOB = {"tasks": [TASK]}
AB: list[dict[str, Any]] = [{"name": "a", "job": JOB}, {"name": "b", "job": JOB, "depends_on": ["a"]}]


def job(name: str, **more: Any) -> JobSpec:
    return JobSpec.parse({"name": name, **JOB, **more})


def flow(*steps: dict[str, Any], **more: Any) -> FlowSpec:
    return FlowSpec.parse({"name": "flow", "steps": list(steps), **more})


def start(people: People, *steps: dict[str, Any], **more: Any) -> Flow:
    return services.start(spec=flow(*steps, **more), tenant=people.lab, user=people.alice, now=clock.now())


def advance(after: float = 0) -> None:
    services.advance_all(now=clock.now() + timedelta(seconds=after))


def set_phase(name: str, phase: str) -> None:
    Job.objects.filter(name=f"flow-{name}").update(phase=phase)


def submitted_jobs() -> list[str]:
    """The names of the submitted jobs, in order of submission."""
    return list(Job.objects.order_by("submitted_at").values_list("name", flat=True))


def kinds(thing: Flow | JobTemplate) -> list[str]:
    subject = f"{'flow' if isinstance(thing, Flow) else 'template'}:{thing.uid}"
    return list(LoggedEvent.objects.filter(subject=subject).order_by("id").values_list("kind", flat=True))


def problems(people: People, *steps: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(Invalid) as caught:
        start(people, *steps)
    assert not Flow.objects.exists()
    return {problem.path: problem.message for problem in caught.value.problems}


def test_steps_start_in_order_and_are_recorded(people: People) -> None:
    flow_row = start(people, *AB)
    assert (flow_row.phase, submitted_jobs()) == ("pending", ["flow-a"])
    set_phase("a", "running")
    advance()
    advance()
    assert submitted_jobs() == ["flow-a"]
    set_phase("a", "completed")
    advance()
    assert submitted_jobs() == ["flow-a", "flow-b"]
    set_phase("b", "completed")
    advance()
    flow_row.refresh_from_db()
    assert flow_row.phase == "succeeded"
    assert flow_row.ended_at is not None
    assert kinds(flow_row) == [
        "FlowStarted", "FlowStepStarted", "FlowPhaseChanged", "FlowStepStarted", "FlowPhaseChanged",
    ]  # fmt: skip
    assert all(job.owner == people.alice and job.tenant == people.lab for job in Job.objects.all())


def test_independent_steps_start_together(people: People) -> None:
    start(people, *({"name": name, "job": JOB} for name in "cab"))
    assert submitted_jobs() == ["flow-c", "flow-a", "flow-b"]


def test_failed_step_fails_the_flow_and_running_jobs_go_on(people: People) -> None:
    flow_row = start(people, *AB, {"name": "c", "job": JOB})
    set_phase("c", "running")
    set_phase("a", "failed")
    advance()
    flow_row.refresh_from_db()
    assert (flow_row.phase, flow_row.ended_at, submitted_jobs()) == ("failed", None, ["flow-a", "flow-c"])
    set_phase("c", "completed")
    advance()
    flow_row.refresh_from_db()
    assert (flow_row.phase, flow_row.ended_at is not None, submitted_jobs()) == ("failed", True, ["flow-a", "flow-c"])


def test_stop_ends_running_jobs_and_starts_none(people: People) -> None:
    flow_row = start(people, *AB, {"name": "c", "job": JOB})
    set_phase("a", "completed")
    Job.objects.filter(name="flow-a").update(gang_phase="completed")
    stopped = services.stop(flow_row, user=people.alice, now=clock.now())
    advance()
    flow_row.refresh_from_db()
    assert (stopped.phase, submitted_jobs()) == ("terminated", ["flow-a", "flow-c"])
    assert dict(Job.objects.values_list("name", "phase")) == {"flow-a": "completed", "flow-c": "terminated"}
    assert flow_row.ended_at is not None
    assert kinds(flow_row)[-2:] == ["FlowStopped", "FlowPhaseChanged"]
    with pytest.raises(Refused, match="has finished already"):
        services.stop(flow_row, user=people.alice, now=clock.now())


@pytest.mark.parametrize(("retain", "left"), [("retain", ["flow-a"]), ("delete", [])])
def test_retain_policy_of_a_succeeded_flow(people: People, retain: str, left: list[str]) -> None:
    start(people, AB[0], retain=retain)
    set_phase("a", "completed")
    advance()
    assert list(Job.objects.filter(deleted_at=None).values_list("name", flat=True)) == left


def test_jobs_of_a_failed_flow_are_retained(people: People) -> None:
    start(people, AB[0], retain="delete")
    set_phase("a", "failed")
    advance()
    assert Job.objects.filter(deleted_at=None).count() == 1


def test_an_aborted_job_that_is_deleted_fails_the_flow(people: People) -> None:
    flow_row = start(people, *AB)
    set_phase("a", "aborted")
    advance()
    flow_row.refresh_from_db()
    assert (flow_row.phase, flow_row.ended_at) == ("running", None)
    Job.objects.update(deleted_at=clock.now())
    advance()
    flow_row.refresh_from_db()
    assert flow_row.phase == "failed"


def test_refused_step_has_a_reason_and_is_retried(people: People) -> None:
    flow_row = start(people, *AB)
    queues.set_state(people.queue, "closed", by=people.ada, actor=PLATFORM, now=clock.now())
    set_phase("a", "completed")
    advance()
    advance(1)
    step = FlowStep.objects.get(name="b")
    assert "Queue default is closed" in step.refusal
    queues.set_state(people.queue, "open", by=people.ada, actor=PLATFORM, now=clock.now())
    advance(1)
    assert submitted_jobs() == ["flow-a"]
    advance(TRY_AGAIN_SECONDS + 1)
    assert submitted_jobs() == ["flow-a", "flow-b"]
    step.refresh_from_db()
    assert (step.refusal, kinds(flow_row).count("FlowStepRefused")) == ("", 1)


def test_steps_use_templates_and_patches(people: People) -> None:
    services.create_template(spec=job("train"), tenant=people.lab, user=people.alice, now=clock.now())
    more = {"name": "more", "template": "train", "patch": {"spec": {"tasks": {"main": {"replicas": 3}}}}}
    start(people, {"name": "train"}, more)
    train, bigger = Job.objects.order_by("submitted_at")
    assert (train.name, train.replicas, bigger.name, bigger.replicas) == ("flow-train", 1, "flow-more", 3)


def test_flow_keeps_the_templates_of_its_start(people: People) -> None:
    template = services.create_template(spec=job("t"), tenant=people.lab, user=people.alice, now=clock.now())
    start(people, AB[0], {"name": "t", "depends_on": ["a"]})
    services.change_template(template, spec=job("t", priority=7), user=people.alice, now=clock.now())
    services.delete_template(template, user=people.alice, now=clock.now())
    set_phase("a", "completed")
    advance()
    assert Job.objects.get(name="flow-t").priority == 0


def test_all_problems_are_reported_at_once(people: People) -> None:
    services.create_template(spec=job("train"), tenant=people.lab, user=people.alice, now=clock.now())
    found = problems(
        people,
        {"name": "train", "patch": {"spec": {"tasks": {"main": {"replicas": "x"}}}}},
        {"name": "trian"},
        {"name": "c", "template": "other"},
        {"name": "s" * 45, "job": {"tasks": [{**TASK, "name": "long-task-name"}]}},
    )
    assert found["steps.0.patch.spec.tasks[0].replicas"] == "Must be an integer, not “x”."
    assert found["steps.1.name"] == "Unknown template “trian”. Did you mean “train”?"
    assert found["steps.2.template"] == "Unknown template “other”. Available: train."
    assert "host names" in found["steps.3.job.tasks.0.name"]


def test_probe_of_an_unknown_task_is_refused(people: People) -> None:
    waiting = {"name": "b", "job": JOB, "depends_on": ["a"], "probes": [{"task": "ps", "state": "running"}]}
    found = problems(people, AB[0], waiting)
    assert found == {"steps.1.probes.0.task": "The job of step a has no task “ps”. Its tasks: main."}


def test_impossible_jobs_are_refused_before_the_start(people: People) -> None:
    large = {"tasks": [{**TASK, "resources": {"cpu": "64"}}]}
    found = problems(people, AB[0], {"name": "b", "job": large, "depends_on": ["a"]})
    assert "largest node has 4" in found["steps.1.job.tasks.0.resources.cpu"]
    with pytest.raises(Refused) as caught:
        start(people, {"name": "a", "job": {**JOB, "queue": "none"}})
    assert caught.value.path == "steps.0.job.queue"
    assert not Job.objects.exists()


def test_taken_names_are_refused(people: People) -> None:
    people.submit("flow-b")
    with pytest.raises(Refused) as caught:
        start(people, *AB)
    assert (caught.value.code, caught.value.path) == ("name_taken", "steps.1.name")
    start(people, AB[0])
    with pytest.raises(Refused) as caught:
        start(people, {"name": "z", "job": JOB})
    assert (caught.value.code, caught.value.path) == ("name_taken", "name")
    assert selectors.free_name(people.lab, "flow") == "flow-1"


def test_same_idempotency_key_starts_one_flow(people: People) -> None:
    common: dict[str, Any] = {"tenant": people.lab, "user": people.alice, "now": clock.now(), "key": "k"}
    first = services.start(spec=flow(*AB), **common)
    assert services.start(spec=flow(*AB), **common) == first
    with pytest.raises(Refused) as caught:
        services.start(spec=flow(AB[0]), **common)
    assert caught.value.code == "key_used"


def test_manifest_is_applied_atomically(people: People) -> None:
    common: dict[str, Any] = {"tenant": people.lab, "user": people.alice, "now": clock.now()}
    with pytest.raises(Invalid):
        services.apply(templates=[job("t")], flow=flow({"name": "missing"}), **common)
    assert not JobTemplate.objects.exists()
    applied = services.apply(templates=[job("t")], flow=flow({"name": "t"}), **common)
    assert (applied.flow is not None, submitted_jobs()) == (True, ["flow-t"])
    again = services.apply(templates=[job("t"), job("u")], flow=None, **common)
    assert [kinds(template) for template in again.templates] == [["JobTemplateCreated"]] * 2
    changed = services.apply(templates=[job("t", priority=1)], flow=None, **common).templates[0]
    assert changed.pk == applied.templates[0].pk
    assert LoggedEvent.objects.get(kind="JobTemplateChanged").payload == {"name": "t", "fields": ["priority"]}


def test_template_is_renamed_to_a_free_name(people: People) -> None:
    now = clock.now()
    one, _two = (services.create_template(spec=job(n), tenant=people.lab, user=people.alice, now=now) for n in "ab")
    with pytest.raises(Refused, match="has a template “b” already"):
        services.change_template(one, spec=job("b"), user=people.alice, now=now)
    assert services.change_template(one, spec=job("c"), user=people.alice, now=now).name == "c"
    with pytest.raises(Refused, match="has a template “b” already"):
        services.create_template(spec=job("b"), tenant=people.lab, user=people.alice, now=now)


def test_outsiders_find_nothing_and_viewers_change_nothing(people: People) -> None:
    flow_row = start(people, *AB)
    template = services.create_template(spec=job("t"), tenant=people.lab, user=people.alice, now=clock.now())
    for user in (people.alice, people.bob, people.ada):
        assert selectors.get(flow_row.uid, user) == flow_row
        assert selectors.template(template.uid, user) == template
    with pytest.raises(NotFound):
        selectors.get(flow_row.uid, people.charlie)
    with pytest.raises(NotFound):
        selectors.template(template.uid, people.charlie)
    common: dict[str, Any] = {"tenant": people.lab, "user": people.bob, "now": clock.now()}
    acts: list[tuple[Any, type[HeklaError]]] = [
        (lambda: services.start(spec=flow(*AB), **common | {"user": people.charlie}), NotFound),
        (lambda: services.start(spec=flow(*AB), **common), Forbidden),
        (lambda: services.stop(flow_row, user=people.bob, now=clock.now()), Forbidden),
        (lambda: services.delete(flow_row, user=people.bob, now=clock.now()), Forbidden),
        (lambda: services.create_template(spec=job("x"), **common), Forbidden),
        (lambda: services.save_template(spec=job("t"), **common), Forbidden),
        (lambda: services.change_template(template, spec=job("t"), user=people.bob, now=clock.now()), Forbidden),
        (lambda: services.delete_template(template, user=people.bob, now=clock.now()), Forbidden),
    ]
    for act, error in acts:
        with pytest.raises(error):
            act()


def test_only_finished_flows_are_deleted(people: People) -> None:
    flow_row = start(people, AB[0])
    with pytest.raises(Refused, match="has not finished"):
        services.delete(flow_row, user=people.alice, now=clock.now())
    set_phase("a", "completed")
    advance()
    services.delete(flow_row, user=people.alice, now=clock.now())
    assert not selectors.visible_to(people.alice).exists()
    assert Job.objects.filter(deleted_at=None).count() == 1


@pytest.mark.parametrize(("phase", "ends"), [("completed", "succeeded"), ("failed", "failed")])
def test_purged_job_changes_nothing(people: People, phase: str, ends: str) -> None:
    flow_row = start(people, *AB, {"name": "c", "job": JOB})
    set_phase("a", phase)
    advance()
    Job.objects.filter(name="flow-a").delete()
    advance()
    Job.objects.update(phase="completed")
    advance()
    flow_row.refresh_from_db()
    assert (flow_row.phase, flow_row.ended_at is not None) == (ends, True)
    assert submitted_jobs() == (["flow-c", "flow-b"] if ends == "succeeded" else ["flow-c"])


def test_broken_flow_does_not_block_others(people: People, caplog: pytest.LogCaptureFixture) -> None:
    broken = start(people, AB[0], name="broken")
    Flow.objects.filter(pk=broken.pk).update(spec={"name": "broken", "steps": "none"}, uid="0" * 32)
    start(people, *AB)
    set_phase("a", "completed")
    advance()
    assert "cannot go on" in caplog.text
    assert "flow-b" in submitted_jobs()


def _pod(name: str, **more: Any) -> None:
    facts = {"task": "main", "index": 0, "attempt": 1, "version": 1, "slot": 1, "address": "127.0.0.1"}
    Pod.objects.create(job=Job.objects.get(name=f"flow-{name}"), created_at=clock.now(), **facts | more)


def test_task_probe_starts_the_next_step(people: People) -> None:
    start(people, AB[0], {**AB[1], "probes": [{"task": "main", "state": "running"}]})
    set_phase("a", "running")
    _pod("a", phase="preparing")
    advance()
    assert submitted_jobs() == ["flow-a"]
    Pod.objects.update(phase="running", stopping=True)
    advance()
    assert submitted_jobs() == ["flow-a"]
    _pod("a", phase="running", attempt=2)
    advance()
    assert submitted_jobs() == ["flow-a", "flow-b"]


def test_task_probe_uses_the_current_size(people: People) -> None:
    start(people, AB[0], {**AB[1], "probes": [{"task": "main", "state": "running"}]})
    larger = {"name": "flow-a", "tasks": [{**TASK, "replicas": 2}]}
    Job.objects.filter(name="flow-a").update(phase="running", spec=larger, replicas=2, revision=2)
    _pod("a", phase="running")
    advance()
    assert submitted_jobs() == ["flow-a"]
    _pod("a", phase="running", index=1, slot=2)
    advance()
    assert submitted_jobs() == ["flow-a", "flow-b"]


@pytest.fixture
def server() -> Iterator[tuple[int, list[bytes]]]:
    """A port that answers every request with the first entry of the list, or not at all if the list is empty."""
    responses: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))
    connections = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connections.append(connection)
            if responses:
                with connection, contextlib.suppress(OSError):  # the client or the end of the test may have closed it
                    connection.recv(4096)
                    connection.sendall(responses[0])

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1], responses
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    for connection in connections:
        connection.close()


@pytest.mark.parametrize(
    ("response", "path", "is_ready"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", "/", True),
        (b"HTTP/1.0 302 Found\r\n\r\n", "/", True),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "/", False),
        (b"SSH-2.0\r\n", "/", False),
        (b"", "/", False),
        (b"", "", True),
    ],
)
def test_port_check_reads_the_response(
    server: tuple[int, list[bytes]], response: bytes, path: str, is_ready: bool
) -> None:
    port, responses = server
    responses.append(response)
    assert port_checks.answers_at("127.0.0.1", Probe(port=port, path=path)) is is_ready


def test_silent_port_times_out(server: tuple[int, list[bytes]], monkeypatch: Any) -> None:
    monkeypatch.setattr(port_checks, "TIMEOUT_SECONDS", 0.05)
    assert not port_checks.answers_at("127.0.0.1", Probe(port=server[0], path="/"))


def test_port_probe_uses_the_address_of_the_first_pod(people: People, server: tuple[int, list[bytes]]) -> None:
    port, responses = server
    start(people, AB[0], {**AB[1], "probes": [{"port": port, "path": "/ready"}]})
    set_phase("a", "running")
    _pod("a", phase="running")
    responses.append(b"HTTP/1.1 200 OK\r\n\r\n")
    advance()
    assert submitted_jobs() == ["flow-a"], "a simulated pod has no network"
    people.cluster.kind = "local"
    people.cluster.save()
    responses[0] = b"HTTP/1.1 503 Busy\r\n\r\n"
    advance()
    assert submitted_jobs() == ["flow-a"]
    responses[0] = b"HTTP/1.1 200 OK\r\n\r\n"
    advance()
    assert submitted_jobs() == ["flow-a", "flow-b"]


def test_job_change_wakes_unfinished_flows(people: People, monkeypatch: Any) -> None:
    wakeups: list[int] = []
    monkeypatch.setattr(wake.advancing, "soon", lambda: wakeups.append(1))
    ended = {"JobPhaseChanged"}
    wake.after_commit(topics={"job:1"}, kinds=ended)
    assert not wakeups
    start(people, *AB)
    wake.after_commit(topics={"tenant:1"}, kinds={"TenantChanged"})
    wake.after_commit(topics={"job:1", "cluster:1"}, kinds={"JobSubmitted"})
    assert not wakeups
    wake.after_commit(topics={"job:1", "cluster:1"}, kinds=ended)
    assert wakeups
