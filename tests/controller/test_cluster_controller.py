"""Jobs from submission to end, with the real engine and real backends."""

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
from hekla.controller.cluster_controller import CACHE_DIFFERS
from hekla.controller.controllers import controllers
from hekla.controller.pods import order_of
from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock


def spec(name: str, command: list[str], *, replicas: int = 1, cpu: str = "1", seconds: float = 0.3, **more) -> JobSpec:
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


@pytest.mark.every_kind
def test_job_runs_to_completion(world: World) -> None:
    job = submit(world, "one", ["sh", "-c", "echo hello"])
    world.reconcile_until(lambda: phase(job) == "completed")
    pod = Pod.objects.get(job=job)
    assert (pod.phase, pod.exit_code, pod.attempt) == ("succeeded", 0, 1)
    assert pod.started_at
    assert pod.finished_at


def test_job_with_room_never_reports_waiting(world: World) -> None:
    job = submit(world, "one", ["true"])
    world.reconcile_until(lambda: phase(job) == "completed")
    assert not LoggedEvent.objects.filter(subject=f"job:{job.uid}", kind="JobUnschedulable").exists()


def test_two_gangs_of_four_never_mix_on_four_cpus(world: World) -> None:
    first = submit(world, "first", ["sleep", "0.5"], replicas=4)
    second = submit(world, "second", ["sleep", "0.5"], replicas=4)
    mixed: list[set[int]] = []

    def done() -> bool:
        mixed.append(set(Pod.objects.filter(phase__in=["bound", "running"]).values_list("job_id", flat=True)))
        return phase(first) == phase(second) == "completed"

    world.reconcile_until(done)
    assert all(len(jobs) <= 1 for jobs in mixed)
    starts = [min(p.started_at for p in Pod.objects.filter(job=job)) for job in (first, second)]
    ends = [max(p.finished_at for p in Pod.objects.filter(job=job)) for job in (first, second)]
    assert ends[0] <= starts[1] or ends[1] <= starts[0]


@pytest.mark.every_kind
def test_aborted_job_releases_its_pods_and_can_be_resumed(world: World) -> None:
    job = submit(world, "long", ["sleep", "60"], replicas=2, seconds=600)
    world.reconcile_until(lambda: phase(job) == "running")
    services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: phase(job) == "aborted")
    assert not Pod.objects.exclude(phase__in=["failed", "succeeded"]).exists()
    services.command(job, LifecycleAction.RESUME_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: phase(job) == "running")
    services.command(job, LifecycleAction.TERMINATE_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: phase(job) == "terminated")


def test_failing_pod_restarts_the_job_up_to_max_retry(world: World) -> None:
    restart = [{"events": ["PodFailed"], "action": "RestartJob"}]
    job = Job.objects.get(
        pk=submit(world, "bad", ["sh", "-c", "exit 3"], policies=restart, max_retry=2, seconds=0.1).pk
    )
    if world.cluster.kind != "local":
        return_code = {**job.spec["tasks"][0]["env"], "HEKLA_SIM_EXIT": "3"}
        job.spec["tasks"][0]["env"] = return_code
        job.save()
    world.reconcile_until(lambda: phase(job) == "failed")
    job.refresh_from_db()
    assert job.retry_count == 2
    assert [pod.attempt for pod in job.pods.order_by("attempt")] == [1, 2, 3]
    assert all(pod.exit_code == 3 for pod in job.pods.all())


def test_pod_restarted_beside_a_failed_pod_is_placed(world: World) -> None:
    """No policy replaces the failed pod. The gang does not wait for it, though at first it had to be complete."""
    fails = {"name": "fails", "command": ["false"], "env": {"HEKLA_SIM_SECONDS": "0", "HEKLA_SIM_EXIT": "1"}}
    works = {"name": "works", "replicas": 2, "command": ["sleep", "60"], "env": {"HEKLA_SIM_SECONDS": "600"}}
    tasks = [{**task, "resources": {"cpu": "1"}, "grace_seconds": 1} for task in (fails, works)]
    one = JobSpec.parse({"name": "one", "tasks": tasks})
    job = services.submit(spec=one, tenant=world.tenant, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: phase(job) == "running" and job.pods.filter(phase="failed").exists())
    services.command(job, LifecycleAction.RESTART_POD, task="works", index=1, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: job.pods.filter(task="works", attempt=2, phase="running").exists())
    assert [pod.attempt for pod in selectors.current_pods(job)] == [1, 1, 2]
    world.reconcile_until(lambda: phase(job) == "running")
    auditor.audit()


def test_tasks_start_after_their_dependencies_with_known_addresses(world: World) -> None:
    """The servers have the addresses of workers that start later. The gang fits only in two steps."""
    task = {"resources": {"cpu": "1"}, "env": {"HEKLA_SIM_SECONDS": "3"}, "grace_seconds": 1}
    hosts = 'echo "$VC_WORKER_HOSTS" > hosts; test "$(cat hosts)" = "$VC_WORKER_HOSTS" && exec sleep 1'
    tasks = [
        {"name": "worker", "replicas": 2, "command": ["sleep", "0.5"], "depends_on": {"tasks": ["ps"]}, **task},
        {"name": "ps", "command": ["sh", "-c", hosts], **task},
    ]
    staged = JobSpec.parse({"name": "staged", "tasks": tasks, "plugins": {"svc": []}})
    job = services.submit(spec=staged, tenant=world.tenant, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: phase(job) == "completed")
    ps, *workers = job.pods.order_by("task", "index")
    assert [pod.task for pod in (ps, *workers)] == ["ps", "worker", "worker"]
    server_started = (
        LoggedEvent.objects.filter(subject=f"job:{job.uid}", payload__task="ps", payload__new="running").get().pk
    )
    made = LoggedEvent.objects.filter(subject=f"job:{job.uid}", kind="PodCreated", payload__task="worker")
    assert [event.pk > server_started for event in made] == [True, True]
    order = order_of(job, ps, selectors.addresses(job, lambda slot: f"10.0.0.{slot}"))
    assert order.env["VC_WORKER_HOSTS"] == ",".join(pod.address for pod in workers)
    reserved = Job.objects.get(pk=job.pk).reserved_slots
    assert reserved == [*(pod.slot for pod in workers), ps.slot]


def test_event_log_and_rows_agree(world: World) -> None:
    restart = [{"events": ["PodFailed"], "action": "RestartJob"}]
    jobs = [
        submit(world, "good", ["true"], replicas=3, seconds=0.1),
        submit(world, "bad", ["false"], policies=restart, max_retry=1, seconds=0.1),
        submit(world, "large", ["sleep", "0.2"], replicas=4, seconds=0.2),
        submit(world, "stopped", ["sleep", "60"], seconds=600),
    ]
    world.reconcile_until(lambda: phase(jobs[3]) == "running")
    services.command(jobs[3], LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: all(Job.objects.get(pk=job.pk).is_final for job in jobs))
    auditor.audit()


def test_job_completes_if_every_reconciliation_has_empty_caches(world: World) -> None:
    """Each reconciliation runs as in a new process: nothing is started twice and nothing is lost."""
    job = submit(world, "amnesia", ["sleep", "0.5"], replicas=3, seconds=0.5)

    def done() -> bool:
        controllers.reset()
        return phase(job) == "completed"

    world.reconcile_until(done)
    assert [pod.attempt for pod in job.pods.all()] == [1, 1, 1]
    auditor.audit()


@pytest.mark.parametrize("world", ["local"], indirect=True)
def test_ssh_keys_of_pods_are_private_and_in_no_page_or_event(world: World) -> None:
    look = 'stat -c "%a %n" .ssh .ssh/*; test -s .ssh/id_ed25519; cmp .ssh/id_ed25519.pub .ssh/authorized_keys'
    job = submit(world, "keys", ["sh", "-ec", look], replicas=2, plugins={"ssh": []})
    world.reconcile_until(lambda: phase(job) == "completed")
    folders = list(Path(settings.HEKLA_HOME, "local").glob("**/.ssh"))
    assert len(folders) == 2
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for one in folders for path in (one, *one.iterdir())}
    files = ["id_ed25519", "id_ed25519.pub", "authorized_keys", "config"]
    assert modes == {".ssh": 0o700} | dict.fromkeys(files, 0o600)
    (key,) = {(folder / "id_ed25519").read_text() for folder in folders}
    secret = key.splitlines()[3]
    assert all(secret not in str(event.payload) for event in LoggedEvent.objects.all())
    assert secret not in str(Job.objects.values().get()) + str(list(Pod.objects.values()))
    other_files = [
        path for path in Path(settings.HEKLA_HOME).rglob("*") if path.is_file() and path.name != "id_ed25519"
    ]
    assert not [path for path in other_files if secret.encode() in path.read_bytes()]


@pytest.mark.parametrize("world", ["local"], indirect=True)
def test_usage_of_running_pods_is_measured_during_reconciliation(world: World, monkeypatch) -> None:
    monkeypatch.setattr("hekla.controller.pod_metrics.EVERY", timedelta(0))
    job = submit(world, "busy", ["sh", "-c", "while :; do :; done"])
    other = submit(world, "asleep", ["sleep", "60"])

    def done() -> bool:
        return Sample.objects.filter(pod__job=job, cpu_ms__gt=0).count() > 2

    world.reconcile_until(done)
    used = dict(Sample.objects.order_by("at").values_list("pod__job__name", "cpu_ms"))
    assert used["busy"] > used.get("asleep", 0)
    for one in (job, other):
        services.command(one, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: phase(job) == phase(other) == "aborted")


def test_failing_metrics_do_not_stop_reconciliation(world: World, monkeypatch) -> None:
    def fail(_keys: object) -> None:
        raise BackendError("not now")

    monkeypatch.setattr("hekla.controller.pod_metrics.EVERY", timedelta(0))
    backend = backend_of(world.cluster)
    monkeypatch.setattr(type(backend), "metrics", SimpleNamespace(measure=fail))
    job = submit(world, "one", ["sleep", "0.3"], seconds=3)
    world.reconcile_until(lambda: phase(job) == "completed")
    assert not Sample.objects.exists()


@pytest.mark.parametrize("world", ["simulated"], indirect=True)
def test_fitting_job_is_placed_while_budgets_protect_all_victims(world: World, monkeypatch) -> None:
    monkeypatch.setattr(disruption_budgets, "protects_victims", lambda *_args, **_more: True)
    job = submit(world, "beside", ["true"], replicas=2, seconds=0.1)
    world.reconcile_until(lambda: phase(job) == "completed")


def test_corrupted_engine_cache_is_reported_and_replaced(world: World, caplog: pytest.LogCaptureFixture) -> None:
    submit(world, "first", ["sleep", "60"], seconds=60)
    world.reconcile_until(lambda: Pod.objects.filter(phase="running").exists())
    controller = controllers.get(world.cluster.pk)
    corrupted = controller.engine_cache
    corrupted.table.used[:] += 7
    submit(world, "second", ["sleep", "60"], seconds=60)
    controllers.reconcile(world.cluster)
    assert CACHE_DIFFERS in caplog.text
    assert controller.engine_cache is not corrupted
    caplog.clear()
