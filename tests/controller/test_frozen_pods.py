"""Failed pods that stay: a person opens one where it failed, mends it, and runs it again; then its time is over."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import DatabaseError
from django.test import Client
from django.urls import reverse
from tests.controller.conftest import World
from tests.controller.test_cluster_controller import phase
from tests.support import auditor

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs import selectors, services
from hekla.apps.jobs.models import FrozenPod, Job
from hekla.apps.jobs.services import transitions
from hekla.apps.usage import folders
from hekla.apps.usage.models import JobFolder
from hekla.backends.base import PodKey
from hekla.backends.streams import PodCommand
from hekla.controller import frozen_pods
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.controller.observations import key_of
from hekla.domain.errors import NotFound, Refused
from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock
from hekla.live.terminals.terminal import SHELL

pytestmark = pytest.mark.parametrize("world", ["local"], indirect=True)
UP = b"\x1b[A"
CHECK = 'grep -q good input && echo "trained\nfor $WHO"'


@pytest.fixture
def client(world: World) -> Client:
    made = Client()
    made.force_login(world.alice, backend="django.contrib.auth.backends.ModelBackend")
    return made


def submitted(world: World, script: str = CHECK, **more: Any) -> Job:
    task = {"name": "main", "command": ["sh", "-c", script], "env": {"WHO": "Alice"}, "resources": {"cpu": "1"}}
    document = {"name": "train", "tasks": [{**task, "working_dir": "src", "grace_seconds": 1}], **more}
    spec = JobSpec.parse({"files": {"src/input": "bad"}, "keep_failed_seconds": 3600, **document})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def frozen_of(job: Job) -> FrozenPod | None:
    return FrozenPod.objects.filter(pod__job=job).select_related("pod__job__tenant", "debug_job").first()


def failed(world: World, **more: Any) -> FrozenPod:
    """What stays of a job that has failed, once the controller has looked at it."""
    job = submitted(world, **more)
    world.reconcile_until(lambda: phase(job) == "failed")
    world.reconcile_until(lambda: (one := frozen_of(job)) is not None and one.size is not None)
    found = frozen_of(job)
    assert found is not None
    return found


def opened(world: World, frozen: FrozenPod) -> Job:
    job, _is_new = services.open_frozen(frozen.pod_id, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: phase(job) == "running")
    return job


def abort(world: World, job: Job) -> None:
    services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: phase(job) == "aborted")


def key_of_debug(job: Job) -> PodKey:
    return key_of(job.pods.select_related("job__tenant").get())


async def reads_until(terminal: PodCommand, text: str) -> str:
    received = ""
    async with asyncio.timeout(30):
        while text not in received:
            piece = await terminal.receive()
            assert piece is not None, received
            received += piece.data.decode()
    return received


def kinds(job: Job) -> list[str]:
    found = LoggedEvent.objects.filter(subject=f"job:{job.uid}", kind__contains="rozen")
    return list(found.order_by("pk").values_list("kind", flat=True))


def test_failed_job_is_opened_where_it_failed_mended_and_run_again(world: World, client: Client) -> None:
    frozen = failed(world)
    job = frozen.pod.job
    page = client.get(reverse("jobs:detail", args=[job.uid])).content.decode()
    assert "Open where it failed" in page
    (listed,) = client.get(reverse("api:v1:job_frozen_pods", args=[job.uid])).json()
    assert (listed["task"], listed["size"] > 0, listed["debug_job"]) == ("main", True, None)
    response = client.post(reverse("jobs:frozen", args=[job.uid, frozen.pod_id]), {"do": "open"})
    debug = Job.objects.get(kind="debugging")
    assert response["Location"] == reverse("jobs:detail", args=[debug.uid])
    world.reconcile_until(lambda: phase(debug) == "running")
    assert "train" in client.get(reverse("jobs:detail", args=[debug.uid])).content.decode()
    again = client.post(reverse("api:v1:job_frozen_pods", args=[job.uid]), {"task": "main"}, "application/json")
    assert (again.status_code, again.json()["uid"]) == (200, str(debug.uid))
    commands, key = backend_of(world.cluster).exec, key_of_debug(debug)

    async def mend() -> str:
        async with commands.run(key, SHELL, in_terminal=True) as terminal:
            await terminal.send(b"PS1='ready> '; pwd\n")
            found = await reads_until(terminal, "/home/pod/src")
            await terminal.send(UP + UP + b"\necho code=$?\n")
            found += await reads_until(terminal, "code=1")
            await terminal.send(b"echo good > input\n" + UP + UP + UP + b"\necho code=$?\n")
            return found + await reads_until(terminal, "code=0")

    text = async_to_sync(mend)()
    assert "trained" in text
    assert "for Alice" in text
    assert b"grep" not in backend_of(world.cluster).logs(key, offset=0, limit=1000).data  # it may hold secrets
    abort(world, debug)
    assert kinds(job) == ["PodFrozen", "FrozenPodOpened"]
    later = opened(world, frozen)  # the files are as they were left
    found, key = backend_of(world.cluster).files, key_of_debug(later)
    with found.open_file(key, "src/input") as file:
        assert file.read() == b"good\n"
    abort(world, later)
    auditor.audit()


def test_files_are_deleted_when_their_time_is_over_and_the_log_stays(world: World) -> None:
    frozen = failed(world, script="echo said; exit 3", ttl_seconds_after_finished=0)
    job, backend, key = frozen.pod.job, backend_of(world.cluster), key_of(frozen.pod)
    debug = opened(world, frozen)
    FrozenPod.objects.update(until=clock.now() - timedelta(seconds=1))
    controllers.get(world.cluster.pk).full_look.done_at = None
    controllers.reconcile(world.cluster)
    assert FrozenPod.objects.get().released_at is None  # a job continues there
    assert Job.objects.get(pk=job.pk).deleted_at is None  # and the job outlives its time
    abort(world, debug)
    controllers.get(world.cluster.pk).full_look.every = timedelta(0)
    world.reconcile_until(lambda: FrozenPod.objects.get().cleaned_at is not None)
    assert backend.frozen.measure(key) == 0
    assert backend.logs(key, offset=0, limit=100).data == b"said\n"
    assert kinds(job)[-1] == "FrozenPodReleased"
    with pytest.raises(NotFound):
        services.open_frozen(frozen.pod_id, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: Job.objects.get(pk=job.pk).deleted_at is not None)


def test_deleted_job_is_cleaned_once_nothing_runs_in_its_files(world: World) -> None:
    frozen = failed(world)
    job, debug = frozen.pod.job, opened(world, frozen)
    services.delete(job, user=world.alice, now=clock.now())
    controllers.get(world.cluster.pk).full_look.every = timedelta(0)
    for _ in range(3):
        controllers.reconcile(world.cluster)
    assert backend_of(world.cluster).frozen.measure(key_of(frozen.pod)) > 0
    abort(world, debug)
    world.reconcile_until(lambda: Job.objects.get(pk=job.pk).cleaned_at is not None)
    assert backend_of(world.cluster).frozen.measure(key_of(frozen.pod)) == 0


def test_person_keeps_and_deletes_files_but_not_under_a_job(world: World, client: Client) -> None:
    frozen = failed(world)
    place = reverse("api:v1:job_frozen_pod", args=[frozen.pod.job.uid, "main", 0])
    longer = client.patch(place, {"seconds": 7200}, "application/json").json()
    assert longer["until"] > frozen.until.isoformat()
    assert client.patch(place, {"seconds": 60}, "application/json").status_code == 409
    until = FrozenPod.objects.get().pod.finished_at + timedelta(days=7)
    assert client.patch(place, {"seconds": 604_800}, "application/json").status_code == 200
    assert FrozenPod.objects.get().until == until
    debug = opened(world, frozen)
    with pytest.raises(Refused, match="debug-train-1 runs in these files"):
        services.release_frozen(frozen.pod_id, user=world.alice, now=clock.now())
    folders.list_jobs([frozen.pod.job], now=clock.now() + timedelta(days=1))
    abort(world, debug)
    assert client.delete(place).status_code == 204
    controllers.get(world.cluster.pk).full_look.every = timedelta(0)
    world.reconcile_until(lambda: FrozenPod.objects.get().cleaned_at is not None)
    assert JobFolder.objects.get().due_at <= clock.now()  # what the tenant's files take is measured again
    assert client.delete(place).status_code == 404


def test_what_does_not_fit_does_not_stay(world: World, settings: Any) -> None:
    settings.KEEP_FAILED_BYTES = 1
    job = submitted(world)
    world.reconcile_until(lambda: phase(job) == "failed")
    controllers.get(world.cluster.pk).full_look.every = timedelta(0)
    world.reconcile_until(lambda: (one := frozen_of(job)) is not None and one.cleaned_at is not None)
    assert kinds(job) == ["FrozenPodReleased"]
    assert LoggedEvent.objects.get(kind="FrozenPodReleased").payload["reason"] == "room"


@pytest.mark.parametrize("name", ["note_size", "release_due", "mark_frozen_cleaned"])
def test_controller_that_dies_is_continued(world: World, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row is written with the end of the job; each step after it is repeated by the next controller."""
    real, deaths = getattr(frozen_pods.services, name), []

    def dies_once(*args: Any, **more: Any) -> None:
        if not deaths:
            deaths.append(name)
            raise DatabaseError("the process died")
        real(*args, **more)

    job = submitted(world)
    monkeypatch.setattr(frozen_pods.services, name, dies_once)

    def over() -> bool:
        FrozenPod.objects.filter(size__isnull=False).update(until=clock.now())
        controllers.reset()
        frozen = frozen_of(job)
        return frozen is not None and frozen.cleaned_at is not None

    deadline = clock.now() + timedelta(seconds=60)
    while not over():
        assert clock.now() < deadline
        try:
            world.reconcile_until(lambda: True)
        except DatabaseError:
            controllers.reset()
    assert deaths == [name]
    assert kinds(job) == ["PodFrozen", "FrozenPodReleased"]
    assert backend_of(world.cluster).frozen.measure(key_of(job.pods.select_related("job__tenant").get())) == 0


def test_end_of_the_job_and_its_frozen_pods_are_one_transaction(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job, real = submitted(world), transitions.freezing.freeze

    def dies(*args: Any, **more: Any) -> None:
        real(*args, **more)
        if args[0].is_final:
            monkeypatch.setattr(transitions.freezing, "freeze", real)
            raise DatabaseError("the process died")

    monkeypatch.setattr(transitions.freezing, "freeze", dies)
    with pytest.raises(DatabaseError):
        world.reconcile_until(lambda: phase(job) == "failed")
    assert phase(job) in {"pending", "running"}  # pending if its start was observed with its end
    assert frozen_of(job) is None
    world.reconcile_until(lambda: phase(job) == "failed")
    assert frozen_of(job) is not None


def test_only_pods_that_failed_by_themselves_stay(world: World) -> None:
    wait = {"name": "waits", "command": ["sleep", "60"], "resources": {"cpu": "1"}, "grace_seconds": 1}
    fails = {"name": "fails", "command": ["false"], "resources": {"cpu": "1"}, "grace_seconds": 1}
    ends = [{"events": ["PodFailed"], "action": "TerminateJob"}]
    job = submitted(world, tasks=[wait, fails], policies=ends)
    world.reconcile_until(lambda: phase(job) in ("failed", "terminated"))
    assert [frozen.pod.task for frozen in selectors.frozen_pods(job)] == ["fails"]
    usual = submitted(world, name="usual", keep_failed_seconds=None)
    world.reconcile_until(lambda: phase(usual) == "failed")
    assert selectors.frozen_pods(usual) == []


def test_failed_command_is_whole_and_its_secrets_are_in_no_log(world: World) -> None:
    """The name of the job that continues there is longer, so its host names would be too long with this task."""
    task = {"name": "w" * 20, "command": ["sh", "-c", "exit 3", "<% $secrets.token %>", "--all"]}
    spec = JobSpec.parse(
        {
            "name": "t" * 40,
            "keep_failed_seconds": 3600,
            "plugins": {"openpai": []},
            "tasks": [{**task, "resources": {"cpu": "1"}, "grace_seconds": 1}],
        }
    )
    job = services.submit(
        spec=spec, tenant=world.tenant, user=world.alice, now=clock.now(), secrets={"token": "hush hush"}
    )
    world.reconcile_until(lambda: (one := frozen_of(job)) is not None and one.size is not None)
    frozen = frozen_of(job)
    assert frozen is not None
    debug = opened(world, frozen)
    backend, key = backend_of(world.cluster), key_of_debug(debug)

    async def known() -> str:
        async with backend.exec.run(key, ("sh", "-c", 'echo "$HEKLA_FAILED_COMMAND"; cat "$HISTFILE"')) as command:
            return await reads_until(command, "--all\n")

    assert "sh -c 'exit 3' 'hush hush' --all" in async_to_sync(known)()
    world.backend_until(lambda: backend.logs(key, offset=0, limit=1000).data != b"")
    assert b"hush" not in backend.logs(key, offset=0, limit=1000).data
    abort(world, debug)


def test_job_that_continued_does_not_start_again_in_deleted_files(world: World) -> None:
    frozen = failed(world)
    debug = opened(world, frozen)
    abort(world, debug)
    services.release_frozen(frozen.pod_id, user=world.alice, now=clock.now())
    services.command(debug, LifecycleAction.RESUME_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: phase(debug) == "failed")
    assert "not kept" in debug.pods.latest("attempt").message


def test_claims_of_failed_pods_that_do_not_stay_are_released(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where working folders outlive their pods, somebody must delete those of all failed pods."""
    monkeypatch.setattr(transitions.freezing, "MOST_OF_JOB", 0)
    monkeypatch.setattr(transitions.freezing, "_outlive_their_pods", lambda _job: True)
    job = submitted(world)
    world.reconcile_until(lambda: phase(job) == "failed")
    controllers.get(world.cluster.pk).full_look.every = timedelta(0)
    world.reconcile_until(FrozenPod.objects.filter(cleaned_at__isnull=False).exists)
    assert (selectors.frozen_pods(job), kinds(job)) == ([], [])
