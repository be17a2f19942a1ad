"""From a submission to its end, with the real engine and real backends."""

import stat
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.conf import settings
from tests.controller.conftest import World
from tests.support import auditor

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs import selectors, services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.usage.models import Sample
from hekla.backends.base import BackendError
from hekla.controller import disruption_budgets
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.controller.pods import order_of
from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock


def spec(name: str, command: list[str], *, replicas: int = 1, cpu: str = "1", seconds: float = 1, **more) -> JobSpec:
    task = {
        "name": "worker",
        "replicas": replicas,
        "command": command,
        "resources": {"cpu": cpu},
        "env": {"HEKLA_SIM_SECONDS": str(seconds)},
        "grace_seconds": 1,
    }
    return JobSpec.parse({"name": name, "tasks": [task], **more})


def submit(world: World, *args, **kwargs) -> Job:
    return services.submit(spec=spec(*args, **kwargs), tenant=world.tenant, user=world.alice, now=clock.now())


def phase(job: Job) -> str:
    return Job.objects.get(pk=job.pk).phase


def test_a_job_runs_to_its_end(world: World) -> None:
    job = submit(world, "one", ["sh", "-c", "echo hello"])
    world.turn_until(lambda: phase(job) == "completed")
    pod = Pod.objects.get(job=job)
    assert (pod.phase, pod.exit_code, pod.attempt) == ("succeeded", 0, 1)
    assert pod.started_at
    assert pod.finished_at


def test_a_job_that_has_room_never_says_that_it_waits(world: World) -> None:
    job = submit(world, "one", ["true"])
    world.turn_until(lambda: phase(job) == "completed")
    assert not LoggedEvent.objects.filter(subject=f"job:{job.uid}", kind="JobUnschedulable").exists()


def test_two_gangs_of_four_never_mix_on_four_places(world: World) -> None:
    first = submit(world, "first", ["sleep", "0.5"], replicas=4)
    second = submit(world, "second", ["sleep", "0.5"], replicas=4)
    mixed: list[set[int]] = []

    def done() -> bool:
        mixed.append(set(Pod.objects.filter(phase__in=["bound", "running"]).values_list("job_id", flat=True)))
        return phase(first) == phase(second) == "completed"

    world.turn_until(done)
    assert all(len(jobs) <= 1 for jobs in mixed)
    starts = [min(p.started_at for p in Pod.objects.filter(job=job)) for job in (first, second)]
    ends = [max(p.finished_at for p in Pod.objects.filter(job=job)) for job in (first, second)]
    assert ends[0] <= starts[1] or ends[1] <= starts[0]


def test_an_aborted_job_lets_go_of_everything_and_can_be_resumed(world: World) -> None:
    job = submit(world, "long", ["sleep", "60"], replicas=2, seconds=600)
    world.turn_until(lambda: phase(job) == "running")
    services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    world.turn_until(lambda: phase(job) == "aborted")
    assert not Pod.objects.exclude(phase__in=["failed", "succeeded"]).exists()
    services.command(job, LifecycleAction.RESUME_JOB, user=world.alice, now=clock.now())
    world.turn_until(lambda: phase(job) == "running")
    services.command(job, LifecycleAction.TERMINATE_JOB, user=world.alice, now=clock.now())
    world.turn_until(lambda: phase(job) == "terminated")


def test_a_failing_pod_restarts_the_job_as_often_as_allowed(world: World) -> None:
    restart = [{"events": ["PodFailed"], "action": "RestartJob"}]
    job = Job.objects.get(
        pk=submit(world, "bad", ["sh", "-c", "exit 3"], policies=restart, max_retry=2, seconds=0.1).pk
    )
    if world.cluster.kind != "local":
        return_code = {**job.spec["tasks"][0]["env"], "HEKLA_SIM_EXIT": "3"}
        job.spec["tasks"][0]["env"] = return_code
        job.save()
    world.turn_until(lambda: phase(job) == "failed")
    job.refresh_from_db()
    assert job.retry_count == 2
    assert [pod.attempt for pod in job.pods.order_by("attempt")] == [1, 2, 3]
    assert all(pod.exit_code == 3 for pod in job.pods.all())


def test_what_is_restarted_beside_a_pod_that_failed_finds_its_place(world: World) -> None:
    """No policy replaces what failed, so the gang does not wait for it, though it was to be whole at first."""
    fails = {"name": "fails", "command": ["false"], "env": {"HEKLA_SIM_SECONDS": "0", "HEKLA_SIM_EXIT": "1"}}
    works = {"name": "works", "replicas": 2, "command": ["sleep", "60"], "env": {"HEKLA_SIM_SECONDS": "600"}}
    tasks = [{**task, "resources": {"cpu": "1"}, "grace_seconds": 1} for task in (fails, works)]
    one = JobSpec.parse({"name": "one", "tasks": tasks})
    job = services.submit(spec=one, tenant=world.tenant, user=world.alice, now=clock.now())
    world.turn_until(lambda: phase(job) == "running" and job.pods.filter(phase="failed").exists())
    services.command(job, LifecycleAction.RESTART_POD, task="works", index=1, user=world.alice, now=clock.now())
    world.turn_until(lambda: job.pods.filter(task="works", attempt=2, phase="running").exists())
    assert [pod.attempt for pod in selectors.current_pods(job)] == [1, 1, 2]
    world.turn_until(lambda: phase(job) == "running")
    auditor.audit()


def test_tasks_start_after_those_that_they_wait_for_and_are_known_before(world: World) -> None:
    """The servers are told the addresses of workers that are still to come; all of a gang fits only in two steps."""
    task = {"resources": {"cpu": "1"}, "env": {"HEKLA_SIM_SECONDS": "3"}, "grace_seconds": 1}
    hosts = 'echo "$VC_WORKER_HOSTS" > hosts; test "$(cat hosts)" = "$VC_WORKER_HOSTS" && exec sleep 1'
    tasks = [
        {"name": "worker", "replicas": 2, "command": ["sleep", "0.5"], "depends_on": {"tasks": ["ps"]}, **task},
        {"name": "ps", "command": ["sh", "-c", hosts], **task},
    ]
    staged = JobSpec.parse({"name": "staged", "tasks": tasks, "plugins": {"svc": []}})
    job = services.submit(spec=staged, tenant=world.tenant, user=world.alice, now=clock.now())
    world.turn_until(lambda: phase(job) == "completed")
    ps, *workers = job.pods.order_by("task", "index")
    assert [pod.task for pod in (ps, *workers)] == ["ps", "worker", "worker"]
    told = LoggedEvent.objects.filter(subject=f"job:{job.uid}", payload__task="ps", payload__new="running").get().pk
    made = LoggedEvent.objects.filter(subject=f"job:{job.uid}", kind="PodCreated", payload__task="worker")
    assert [event.pk > told for event in made] == [True, True]
    order = order_of(job, ps, selectors.addresses(job, lambda slot: f"10.0.0.{slot}"))
    assert order.env["VC_WORKER_HOSTS"] == ",".join(pod.address for pod in workers)
    reserved = Job.objects.get(pk=job.pk).reserved_slots
    assert reserved == [*(pod.slot for pod in workers), ps.slot]


def test_the_log_alone_tells_the_same_story_as_the_rows(world: World) -> None:
    restart = [{"events": ["PodFailed"], "action": "RestartJob"}]
    jobs = [
        submit(world, "good", ["true"], replicas=3, seconds=0.1),
        submit(world, "bad", ["false"], policies=restart, max_retry=1, seconds=0.1),
        submit(world, "large", ["sleep", "0.2"], replicas=4, seconds=0.2),
        submit(world, "stopped", ["sleep", "60"], seconds=600),
    ]
    world.turn_until(lambda: phase(jobs[3]) == "running")
    services.command(jobs[3], LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    world.turn_until(lambda: all(Job.objects.get(pk=job.pk).is_final for job in jobs))
    auditor.audit()


def test_a_process_that_remembers_nothing_comes_to_the_same(world: World) -> None:
    """Every turn as if by a new process: nothing is started twice and nothing is lost."""
    job = submit(world, "amnesia", ["sleep", "0.5"], replicas=3, seconds=0.5)

    def done() -> bool:
        controllers.reset()
        return phase(job) == "completed"

    world.turn_until(done)
    assert [pod.attempt for pod in job.pods.all()] == [1, 1, 1]
    auditor.audit()


@pytest.mark.parametrize("world", ["local"], indirect=True)
def test_pods_get_keys_that_nobody_else_reads_and_that_no_page_or_event_shows(world: World) -> None:
    look = 'stat -c "%a %n" .ssh .ssh/*; test -s .ssh/id_ed25519; cmp .ssh/id_ed25519.pub .ssh/authorized_keys'
    job = submit(world, "keys", ["sh", "-ec", look], replicas=2, plugins={"ssh": []})
    world.turn_until(lambda: phase(job) == "completed")
    folders = list(Path(settings.HEKLA_HOME, "local").glob("**/.ssh"))
    assert len(folders) == 2
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for one in folders for path in (one, *one.iterdir())}
    files = ["id_ed25519", "id_ed25519.pub", "authorized_keys", "config"]
    assert modes == {".ssh": 0o700} | dict.fromkeys(files, 0o600)
    (key,) = {(folder / "id_ed25519").read_text() for folder in folders}
    secret = key.splitlines()[3]
    assert all(secret not in str(event.payload) for event in LoggedEvent.objects.all())
    assert secret not in str(Job.objects.values().get()) + str(list(Pod.objects.values()))
    others = [path for path in Path(settings.HEKLA_HOME).rglob("*") if path.is_file() and path.name != "id_ed25519"]
    assert not [path for path in others if secret.encode() in path.read_bytes()]


@pytest.mark.parametrize("world", ["local"], indirect=True)
def test_what_running_pods_use_is_measured_as_the_controller_turns(world: World, monkeypatch) -> None:
    monkeypatch.setattr("hekla.controller.pod_metrics.EVERY", timedelta(0))
    job = submit(world, "busy", ["sh", "-c", "while :; do :; done"])
    other = submit(world, "asleep", ["sleep", "60"])

    def done() -> bool:
        return Sample.objects.filter(pod__job=job, cpu_ms__gt=0).count() > 2

    world.turn_until(done)
    used = dict(Sample.objects.order_by("at").values_list("pod__job__name", "cpu_ms"))
    assert used["busy"] > used.get("asleep", 0)
    for one in (job, other):
        services.command(one, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    world.turn_until(lambda: phase(job) == phase(other) == "aborted")


def test_a_backend_that_cannot_measure_now_stops_no_turn(world: World, monkeypatch) -> None:
    def away(_keys: object) -> None:
        raise BackendError("not now")

    monkeypatch.setattr("hekla.controller.pod_metrics.EVERY", timedelta(0))
    backend = backend_of(world.cluster)
    monkeypatch.setattr(type(backend), "metrics", SimpleNamespace(measure=away))
    job = submit(world, "one", ["sleep", "0.3"], seconds=3)
    world.turn_until(lambda: phase(job) == "completed")
    assert not Sample.objects.exists()


@pytest.mark.parametrize("world", ["simulated"], indirect=True)
def test_who_has_room_is_placed_also_while_budgets_keep_all_who_are_to_give_way(world: World, monkeypatch) -> None:
    monkeypatch.setattr(disruption_budgets, "protects_victims", lambda *_args, **_more: True)
    job = submit(world, "beside", ["true"], replicas=2, seconds=0.1)
    world.turn_until(lambda: phase(job) == "completed")
