"""Forks of jobs with the files of a real pod."""

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.html import escape
from tests.controller.conftest import World, one_machine, world
from tests.support.terminals import member, run_pod

from hekla.apps.audit.sentences import sentence
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.sharing.models import JobFork
from hekla.backends.files import list_folder, read_file
from hekla.controller import job_forks
from hekla.controller.backends import backend_of
from hekla.controller.observations import key_of
from hekla.domain.job_kinds import SESSION
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import PodPhase
from hekla.lib import clock

__all__ = ["one_machine", "world"]
pytestmark = pytest.mark.parametrize("world", ["local"], indirect=True)
SCRIPT = """
[ -e ready ] && exec sleep 1000
mkdir -p deep/er .hekla-tools
echo hello > deep/er/file
echo large > large
ln -s /etc/passwd link
ln -s /etc linked
mkfifo pipe
echo log > .hekla-tools/log
touch ready
exec sleep 1000
"""


def text(pod: Pod, path: str) -> bytes:
    return b"".join(read_file(backend_of(pod.job.cluster), key_of(pod), path)[0])


def names(pod: Pod) -> set[str]:
    return {entry.name for entry in list_folder(backend_of(pod.job.cluster), key_of(pod), "").entries}


def test_fork_copies_files_and_no_links(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    source, mia, client = run_pod(world, SCRIPT), member(world, "mia", "member"), Client()
    world.reconcile_until(lambda: "ready" in names(source))
    client.force_login(mia, backend="django.contrib.auth.backends.ModelBackend")
    address = reverse("sharing:fork", args=[source.job.uid, source.pk])
    assert "512 MiB" in client.get(address).content.decode()
    made = client.post(address)
    copy = JobFork.objects.get()
    assert made.headers["Location"] == f"{reverse('jobs:detail', args=[copy.job.uid])}?tab=pods"
    assert (copy.job.owner, copy.job.name != source.job.name) == (mia, True)
    assert job_forks.copy_files(now=clock.now()) == 0, "it does not run yet"
    world.reconcile_until(lambda: Pod.objects.filter(job=copy.job, phase=PodPhase.RUNNING).exists())
    assert job_forks.copy_files(now=clock.now()) == 1
    copy.refresh_from_db()
    target = Pod.objects.select_related("job__cluster", "job__tenant").get(job=copy.job)
    assert text(target, "deep/er/file") == b"hello\n"
    assert (copy.state, copy.message, copy.left_out) == ("done", "", 3)
    assert copy.files >= 3
    client.force_login(world.alice, backend="django.contrib.auth.backends.ModelBackend")
    part = client.get(reverse("sharing:of_job", args=[copy.job.uid])).content.decode()
    assert "Fork of talk" in part
    assert "3 entries were left out." in part
    event = LoggedEvent.objects.get(kind="JobForked")
    assert (
        sentence(event, "job talk").text == f"mia forked job talk with the files of pod main-0 as job {copy.job.name}."
    )


def test_files_of_an_ended_pod_are_looked_at_without_its_program(world: World) -> None:
    """TensorBoard for a job that has ended, for example of its third replica."""
    script = '[ "$VC_TASK_INDEX" = 2 ] && touch curves; exit 0'
    task = {"name": "main", "command": ["sh", "-c", script], "replicas": 3, "resources": {"cpu": "100m"}}
    spec = JobSpec.parse({"name": "ended", "tasks": [task], "plugins": {"env": []}})
    job = jobs.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: Job.objects.get(pk=job.pk).phase == "completed")
    source, client = Pod.objects.get(job=job, index=2), Client()
    client.force_login(world.alice, backend="django.contrib.auth.backends.ModelBackend")
    page = client.get(reverse("jobs:pod", args=[job.uid, source.pk])).content.decode()
    address = f"{reverse('sharing:fork', args=[job.uid, source.pk])}?tool=tensorboard&only_files=yes"
    assert escape(address) in page
    assert 'name="only_files" aria-describedby="fork-only-help" checked' in client.get(address).content.decode()
    client.post(address, {"only_files": "on"})
    copy = JobFork.objects.select_related("job").get()
    assert (copy.job.kind, len(copy.job.spec["tasks"]), copy.job.replicas) == (SESSION, 1, 1)
    running = Pod.objects.filter(job=copy.job, phase=PodPhase.RUNNING)
    world.reconcile_until(running.exists)
    assert job_forks.copy_files(now=clock.now()) == 1
    copy.refresh_from_db()
    assert (copy.state, copy.message) == ("done", "")
    assert "curves" in names(running.select_related("job__cluster", "job__tenant").get())


def test_fork_is_bounded_and_says_why_nothing_was_copied(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_forks, "MOST_BYTES", 3)
    source, client = run_pod(world, SCRIPT), Client()
    world.reconcile_until(lambda: "ready" in names(source))
    client.force_login(world.alice, backend="django.contrib.auth.backends.ModelBackend")
    request = {"data": {"task": "main"}, "content_type": "application/json"}
    address = reverse("api:v1:job_forks", args=[source.job.uid])
    first, second = client.post(address, **request), client.post(address, **request)
    assert (first.status_code, first.json()["state"]) == (201, "waiting")
    running = Pod.objects.filter(phase=PodPhase.RUNNING, job__in=Job.objects.exclude(pk=source.job_id))
    world.reconcile_until(lambda: running.count() == 2)
    Pod.objects.filter(job__uid=second.json()["job"]).update(phase="failed")
    Job.objects.filter(uid=second.json()["job"]).update(phase="failed")
    job_forks.copy_files(now=clock.now())
    bounded, ended = JobFork.objects.order_by("pk")
    assert (bounded.state, bounded.size <= 3, bounded.left_out >= 4) == ("done", True, True)
    assert (ended.state, ended.message) == ("failed", "The job ended before its files could be copied.")
    stranger = Client()
    stranger.force_login(member(world, "vera", "viewer"), backend="django.contrib.auth.backends.ModelBackend")
    assert stranger.post(address, **request).status_code == 403
