"""A job ends at its deadline in any phase, with real backends."""

from datetime import timedelta

from tests.controller.conftest import World
from tests.controller.test_cluster_controller import phase, submit
from tests.support import auditor

from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.controller.controllers import controllers
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock


def let_time_pass(job: Job) -> None:
    """Sets the deadline to now, and drops the caches that have the earlier value."""
    assert Job.objects.filter(pk=job.pk, deadline_at__isnull=False).update(deadline_at=clock.now()) == 1
    controllers.reset()


def test_job_over_its_time_limit_fails_and_releases_its_pods(world: World) -> None:
    job = submit(world, "long", ["sleep", "60"], replicas=2, seconds=600, active_deadline_seconds=1)
    world.reconcile_until(lambda: phase(job) == "failed")
    world.reconcile_until(lambda: not Pod.objects.exclude(phase="failed").exists())
    job.refresh_from_db()
    assert (job.reason, job.retry_count) == ("DeadlineExceeded", 0)
    assert "time limit of 1 s" in job.message
    assert job.started_at
    assert job.deadline_at == job.started_at + timedelta(seconds=1)
    auditor.audit()


def test_deadline_stays_over_restarts_also_before_admission(world: World) -> None:
    job = submit(world, "again", ["sleep", "60"], seconds=600, active_deadline_seconds=3600)
    world.reconcile_until(lambda: phase(job) == "running")
    first = Job.objects.get(pk=job.pk).deadline_at
    services.command(job, LifecycleAction.RESTART_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: phase(job) == "running" and Job.objects.get(pk=job.pk).version == 2)
    assert Job.objects.get(pk=job.pk).deadline_at == first
    other = submit(world, "other", ["sleep", "60"], replicas=4, seconds=600)
    services.command(job, LifecycleAction.RESTART_JOB, user=world.alice, now=clock.now())
    let_time_pass(job)
    world.reconcile_until(lambda: phase(job) == "failed" and phase(other) == "running")
    auditor.audit()


def test_resumed_job_gets_a_new_deadline(world: World) -> None:
    job = submit(world, "paused", ["sleep", "60"], seconds=600, active_deadline_seconds=3600)
    world.reconcile_until(lambda: phase(job) == "running")
    first = Job.objects.get(pk=job.pk).deadline_at
    services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: phase(job) == "aborted")
    assert Job.objects.get(pk=job.pk).deadline_at is None
    services.command(job, LifecycleAction.RESUME_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: phase(job) == "running")
    again = Job.objects.get(pk=job.pk).deadline_at
    assert first
    assert again
    assert again > first
    let_time_pass(job)
    world.reconcile_until(lambda: phase(job) == "failed")
