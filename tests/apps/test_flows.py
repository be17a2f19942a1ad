"""Templates and flows: what is kept, what is started, who may do it, and what is told."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.apps.conftest import People

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

TASK = {"name": "main", "command": ["true"], "resources": {"cpu": "1"}}
JOB = {"tasks": [TASK]}
AB: list[dict[str, Any]] = [{"name": "a", "job": JOB}, {"name": "b", "job": JOB, "depends_on": ["a"]}]


def job(name: str, **more: Any) -> JobSpec:
    return JobSpec.parse({"name": name, **JOB, **more})


def flow(*steps: dict[str, Any], **more: Any) -> FlowSpec:
    return FlowSpec.parse({"name": "flow", "steps": list(steps), **more})


def start(people: People, *steps: dict[str, Any], **more: Any) -> Flow:
    return services.start(spec=flow(*steps, **more), tenant=people.lab, user=people.alice, now=clock.now())


def look(after: float = 0) -> None:
    services.advance_all(now=clock.now() + timedelta(seconds=after))


def set_phase(name: str, phase: str) -> None:
    Job.objects.filter(name=f"flow-{name}").update(phase=phase)


def begun() -> list[str]:
    """The jobs that were submitted, in their order."""
    return list(Job.objects.order_by("submitted_at").values_list("name", flat=True))


def kinds(thing: Flow | JobTemplate) -> list[str]:
    subject = f"{'flow' if isinstance(thing, Flow) else 'template'}:{thing.uid}"
    return list(LoggedEvent.objects.filter(subject=subject).order_by("id").values_list("kind", flat=True))


def problems(people: People, *steps: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(Invalid) as caught:
        start(people, *steps)
    assert not Flow.objects.exists()
    return {problem.path: problem.message for problem in caught.value.problems}


def test_steps_begin_one_after_the_other_and_the_log_tells_of_it(people: People) -> None:
    made = start(people, *AB)
    assert (made.phase, begun()) == ("pending", ["flow-a"])
    set_phase("a", "running")
    look()
    look()
    assert begun() == ["flow-a"]
    set_phase("a", "completed")
    look()
    assert begun() == ["flow-a", "flow-b"]
    set_phase("b", "completed")
    look()
    made.refresh_from_db()
    assert made.phase == "succeeded"
    assert made.ended_at is not None
    assert kinds(made) == [
        "FlowStarted", "FlowStepStarted", "FlowPhaseChanged", "FlowStepStarted", "FlowPhaseChanged",
    ]  # fmt: skip
    assert all(job.owner == people.alice and job.tenant == people.lab for job in Job.objects.all())


def test_steps_that_wait_for_nothing_begin_together_in_their_order(people: People) -> None:
    start(people, *({"name": name, "job": JOB} for name in "cab"))
    assert begun() == ["flow-c", "flow-a", "flow-b"]


def test_a_step_that_fails_ends_the_flow_and_what_is_at_work_goes_on(people: People) -> None:
    made = start(people, *AB, {"name": "c", "job": JOB})
    set_phase("c", "running")
    set_phase("a", "failed")
    look()
    made.refresh_from_db()
    assert (made.phase, made.ended_at, begun()) == ("failed", None, ["flow-a", "flow-c"])
    set_phase("c", "completed")
    look()
    made.refresh_from_db()
    assert (made.phase, made.ended_at is not None, begun()) == ("failed", True, ["flow-a", "flow-c"])


def test_stopping_ends_what_is_at_work_and_begins_nothing(people: People) -> None:
    made = start(people, *AB, {"name": "c", "job": JOB})
    set_phase("a", "completed")
    Job.objects.filter(name="flow-a").update(gang_phase="completed")
    stopped = services.stop(made, user=people.alice, now=clock.now())
    look()
    made.refresh_from_db()
    assert (stopped.phase, begun()) == ("terminated", ["flow-a", "flow-c"])
    assert dict(Job.objects.values_list("name", "phase")) == {"flow-a": "completed", "flow-c": "terminated"}
    assert made.ended_at is not None
    assert kinds(made)[-2:] == ["FlowStopped", "FlowPhaseChanged"]
    with pytest.raises(Refused, match="has finished already"):
        services.stop(made, user=people.alice, now=clock.now())


@pytest.mark.parametrize(("retain", "left"), [("retain", ["flow-a"]), ("delete", [])])
def test_the_jobs_of_a_flow_that_succeeded_stay_or_go_as_was_asked(
    people: People, retain: str, left: list[str]
) -> None:
    start(people, AB[0], retain=retain)
    set_phase("a", "completed")
    look()
    assert list(Job.objects.filter(deleted_at=None).values_list("name", flat=True)) == left


def test_jobs_of_a_flow_that_failed_stay(people: People) -> None:
    start(people, AB[0], retain="delete")
    set_phase("a", "failed")
    look()
    assert Job.objects.filter(deleted_at=None).count() == 1


def test_an_aborted_job_that_is_deleted_fails_the_flow(people: People) -> None:
    made = start(people, *AB)
    set_phase("a", "aborted")
    look()
    made.refresh_from_db()
    assert (made.phase, made.ended_at) == ("running", None)
    Job.objects.update(deleted_at=clock.now())
    look()
    made.refresh_from_db()
    assert made.phase == "failed"


def test_a_step_that_cannot_be_submitted_says_why_and_is_tried_again(people: People) -> None:
    made = start(people, *AB)
    queues.set_state(people.queue, "closed", by=people.ada, actor=PLATFORM, now=clock.now())
    set_phase("a", "completed")
    look()
    look(1)
    step = FlowStep.objects.get(name="b")
    assert "Queue default is closed" in step.refusal
    queues.set_state(people.queue, "open", by=people.ada, actor=PLATFORM, now=clock.now())
    look(1)
    assert begun() == ["flow-a"]
    look(TRY_AGAIN_SECONDS + 1)
    assert begun() == ["flow-a", "flow-b"]
    step.refresh_from_db()
    assert (step.refusal, kinds(made).count("FlowStepRefused")) == ("", 1)


def test_steps_are_made_from_templates_and_patches(people: People) -> None:
    services.create_template(spec=job("train"), tenant=people.lab, user=people.alice, now=clock.now())
    more = {"name": "more", "template": "train", "patch": {"spec": {"tasks": {"main": {"replicas": 3}}}}}
    start(people, {"name": "train"}, more)
    train, bigger = Job.objects.order_by("submitted_at")
    assert (train.name, train.replicas, bigger.name, bigger.replicas) == ("flow-train", 1, "flow-more", 3)


def test_a_flow_keeps_what_its_templates_were_when_it_was_started(people: People) -> None:
    template = services.create_template(spec=job("t"), tenant=people.lab, user=people.alice, now=clock.now())
    start(people, AB[0], {"name": "t", "depends_on": ["a"]})
    services.change_template(template, spec=job("t", priority=7), user=people.alice, now=clock.now())
    services.delete_template(template, user=people.alice, now=clock.now())
    set_phase("a", "completed")
    look()
    assert Job.objects.get(name="flow-t").priority == 0


def test_everything_wrong_with_the_jobs_is_told_at_once(people: People) -> None:
    services.create_template(spec=job("train"), tenant=people.lab, user=people.alice, now=clock.now())
    told = problems(
        people,
        {"name": "train", "patch": {"spec": {"tasks": {"main": {"replicas": "x"}}}}},
        {"name": "trian"},
        {"name": "c", "template": "other"},
        {"name": "s" * 45, "job": {"tasks": [{**TASK, "name": "long-task-name"}]}},
    )
    assert told["steps.0.patch.spec.tasks[0].replicas"] == "Must be an integer, not “x”."
    assert told["steps.1.name"] == "Unknown template “trian”. Did you mean “train”?"
    assert told["steps.2.template"] == "Unknown template “other”. Available: train."
    assert "host names" in told["steps.3.job.tasks.0.name"]


def test_a_probe_asks_about_tasks_that_there_are(people: People) -> None:
    waiting = {"name": "b", "job": JOB, "depends_on": ["a"], "probes": [{"task": "ps", "state": "running"}]}
    told = problems(people, AB[0], waiting)
    assert told == {"steps.1.probes.0.task": "The job of step a has no task “ps”. Its tasks: main."}


def test_jobs_that_could_never_run_are_refused_before_any_of_them_runs(people: People) -> None:
    large = {"tasks": [{**TASK, "resources": {"cpu": "64"}}]}
    told = problems(people, AB[0], {"name": "b", "job": large, "depends_on": ["a"]})
    assert "largest node has 4" in told["steps.1.job.tasks.0.resources.cpu"]
    with pytest.raises(Refused) as caught:
        start(people, {"name": "a", "job": {**JOB, "queue": "none"}})
    assert caught.value.path == "steps.0.job.queue"
    assert not Job.objects.exists()


def test_names_are_free_before_it_starts(people: People) -> None:
    people.submit("flow-b")
    with pytest.raises(Refused) as caught:
        start(people, *AB)
    assert (caught.value.code, caught.value.path) == ("name_taken", "steps.1.name")
    start(people, AB[0])
    with pytest.raises(Refused) as caught:
        start(people, {"name": "z", "job": JOB})
    assert (caught.value.code, caught.value.path) == ("name_taken", "name")
    assert selectors.free_name(people.lab, "flow") == "flow-1"


def test_a_key_that_is_sent_twice_starts_one_flow(people: People) -> None:
    asked: dict[str, Any] = {"tenant": people.lab, "user": people.alice, "now": clock.now(), "key": "k"}
    first = services.start(spec=flow(*AB), **asked)
    assert services.start(spec=flow(*AB), **asked) == first
    with pytest.raises(Refused) as caught:
        services.start(spec=flow(AB[0]), **asked)
    assert caught.value.code == "key_used"


def test_a_manifest_is_applied_whole_or_not_at_all(people: People) -> None:
    asked: dict[str, Any] = {"tenant": people.lab, "user": people.alice, "now": clock.now()}
    with pytest.raises(Invalid):
        services.apply(templates=[job("t")], flow=flow({"name": "missing"}), **asked)
    assert not JobTemplate.objects.exists()
    applied = services.apply(templates=[job("t")], flow=flow({"name": "t"}), **asked)
    assert (applied.flow is not None, begun()) == (True, ["flow-t"])
    again = services.apply(templates=[job("t"), job("u")], flow=None, **asked)
    assert [kinds(template) for template in again.templates] == [["JobTemplateCreated"]] * 2
    changed = services.apply(templates=[job("t", priority=1)], flow=None, **asked).templates[0]
    assert changed.pk == applied.templates[0].pk
    assert LoggedEvent.objects.get(kind="JobTemplateChanged").payload == {"name": "t", "fields": ["priority"]}


def test_a_template_can_be_renamed_where_the_name_is_free(people: People) -> None:
    now = clock.now()
    one, _two = (services.create_template(spec=job(n), tenant=people.lab, user=people.alice, now=now) for n in "ab")
    with pytest.raises(Refused, match="has a template “b” already"):
        services.change_template(one, spec=job("b"), user=people.alice, now=now)
    assert services.change_template(one, spec=job("c"), user=people.alice, now=now).name == "c"
    with pytest.raises(Refused, match="has a template “b” already"):
        services.create_template(spec=job("b"), tenant=people.lab, user=people.alice, now=now)


def test_outside_the_tenant_nothing_exists_and_viewers_only_look(people: People) -> None:
    made = start(people, *AB)
    template = services.create_template(spec=job("t"), tenant=people.lab, user=people.alice, now=clock.now())
    for user in (people.alice, people.bob, people.ada):
        assert selectors.get(made.uid, user) == made
        assert selectors.template(template.uid, user) == template
    with pytest.raises(NotFound):
        selectors.get(made.uid, people.charlie)
    with pytest.raises(NotFound):
        selectors.template(template.uid, people.charlie)
    asked: dict[str, Any] = {"tenant": people.lab, "user": people.bob, "now": clock.now()}
    acts: list[tuple[Any, type[HeklaError]]] = [
        (lambda: services.start(spec=flow(*AB), **asked | {"user": people.charlie}), NotFound),
        (lambda: services.start(spec=flow(*AB), **asked), Forbidden),
        (lambda: services.stop(made, user=people.bob, now=clock.now()), Forbidden),
        (lambda: services.delete(made, user=people.bob, now=clock.now()), Forbidden),
        (lambda: services.create_template(spec=job("x"), **asked), Forbidden),
        (lambda: services.save_template(spec=job("t"), **asked), Forbidden),
        (lambda: services.change_template(template, spec=job("t"), user=people.bob, now=clock.now()), Forbidden),
        (lambda: services.delete_template(template, user=people.bob, now=clock.now()), Forbidden),
    ]
    for act, error in acts:
        with pytest.raises(error):
            act()


def test_a_flow_is_deleted_once_it_is_over(people: People) -> None:
    made = start(people, AB[0])
    with pytest.raises(Refused, match="has not finished"):
        services.delete(made, user=people.alice, now=clock.now())
    set_phase("a", "completed")
    look()
    services.delete(made, user=people.alice, now=clock.now())
    assert not selectors.visible_to(people.alice).exists()
    assert Job.objects.filter(deleted_at=None).count() == 1


@pytest.mark.parametrize(("phase", "ends"), [("completed", "succeeded"), ("failed", "failed")])
def test_a_job_that_is_no_longer_kept_changes_nothing(people: People, phase: str, ends: str) -> None:
    made = start(people, *AB, {"name": "c", "job": JOB})
    set_phase("a", phase)
    look()
    Job.objects.filter(name="flow-a").delete()
    look()
    Job.objects.update(phase="completed")
    look()
    made.refresh_from_db()
    assert (made.phase, made.ended_at is not None) == (ends, True)
    assert begun() == (["flow-c", "flow-b"] if ends == "succeeded" else ["flow-c"])


def test_one_flow_in_trouble_does_not_hold_up_others(people: People, caplog: pytest.LogCaptureFixture) -> None:
    broken = start(people, AB[0], name="broken")
    Flow.objects.filter(pk=broken.pk).update(spec={"name": "broken", "steps": "none"}, uid="0" * 32)
    start(people, *AB)
    set_phase("a", "completed")
    look()
    assert "cannot go on" in caplog.text
    assert "flow-b" in begun()


def _pod(name: str, **more: Any) -> None:
    facts = {"task": "main", "index": 0, "attempt": 1, "version": 1, "slot": 1, "address": "127.0.0.1"}
    Pod.objects.create(job=Job.objects.get(name=f"flow-{name}"), created_at=clock.now(), **facts | more)


def test_a_probe_of_a_task_lets_the_next_step_begin_while_the_first_runs(people: People) -> None:
    start(people, AB[0], {**AB[1], "probes": [{"task": "main", "state": "running"}]})
    set_phase("a", "running")
    _pod("a", phase="preparing")
    look()
    assert begun() == ["flow-a"]
    Pod.objects.update(phase="running", stopping=True)
    look()
    assert begun() == ["flow-a"]
    _pod("a", phase="running", attempt=2)
    look()
    assert begun() == ["flow-a", "flow-b"]


def test_a_probe_counts_by_the_present_size_of_the_job(people: People) -> None:
    start(people, AB[0], {**AB[1], "probes": [{"task": "main", "state": "running"}]})
    larger = {"name": "flow-a", "tasks": [{**TASK, "replicas": 2}]}
    Job.objects.filter(name="flow-a").update(phase="running", spec=larger, replicas=2, revision=2)
    _pod("a", phase="running")
    look()
    assert begun() == ["flow-a"]
    _pod("a", phase="running", index=1, slot=2)
    look()
    assert begun() == ["flow-a", "flow-b"]


@pytest.fixture
def server() -> Iterator[tuple[int, list[bytes]]]:
    """A port that answers every request with what stands first in the list, or says nothing where it is empty."""
    says: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))
    held = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            held.append(connection)
            if says:
                with connection, contextlib.suppress(ConnectionError):  # who asks may have gone already
                    connection.recv(4096)
                    connection.sendall(says[0])

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1], says
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    for connection in held:
        connection.close()


@pytest.mark.parametrize(
    ("said", "path", "well"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", "/", True),
        (b"HTTP/1.0 302 Found\r\n\r\n", "/", True),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "/", False),
        (b"SSH-2.0\r\n", "/", False),
        (b"", "/", False),
        (b"", "", True),
    ],
)
def test_a_port_is_asked(server: tuple[int, list[bytes]], said: bytes, path: str, well: bool) -> None:
    port, says = server
    says.append(said)
    assert port_checks.answers_at("127.0.0.1", Probe(port=port, path=path)) is well


def test_a_port_that_keeps_silent_is_not_waited_for(server: tuple[int, list[bytes]], monkeypatch: Any) -> None:
    monkeypatch.setattr(port_checks, "TIMEOUT_SECONDS", 0.05)
    assert not port_checks.answers_at("127.0.0.1", Probe(port=server[0], path="/"))


def test_a_probe_of_a_port_is_asked_at_the_address_of_the_first_pod(
    people: People, server: tuple[int, list[bytes]]
) -> None:
    port, says = server
    start(people, AB[0], {**AB[1], "probes": [{"port": port, "path": "/ready"}]})
    set_phase("a", "running")
    _pod("a", phase="running")
    says.append(b"HTTP/1.1 200 OK\r\n\r\n")
    look()
    assert begun() == ["flow-a"], "a simulated pod has no network"
    people.cluster.kind = "local"
    people.cluster.save()
    says[0] = b"HTTP/1.1 503 Busy\r\n\r\n"
    look()
    assert begun() == ["flow-a"]
    says[0] = b"HTTP/1.1 200 OK\r\n\r\n"
    look()
    assert begun() == ["flow-a", "flow-b"]


def test_a_job_that_changes_asks_for_a_look_while_some_flow_is_not_over(people: People, monkeypatch: Any) -> None:
    asked: list[int] = []
    monkeypatch.setattr(wake.advancing, "soon", lambda: asked.append(1))
    wake.after_commit(topics={"job:1"})
    assert not asked
    start(people, *AB)
    wake.after_commit(topics={"tenant:1"})
    assert not asked
    wake.after_commit(topics={"job:1", "cluster:1"})
    assert asked
