"""A job ends when its time is over, whatever it is at, with real backends."""

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
    """As if the deadline had come; what a process has read before must not hide it."""
    assert Job.objects.filter(pk=job.pk, deadline_at__isnull=False).update(deadline_at=clock.now()) == 1
    controllers.reset()


def test_a_job_that_runs_too_long_has_failed_and_holds_nothing(world: World) -> None:
    job = submit(world, "long", ["sleep", "60"], replicas=2, seconds=600, active_deadline_seconds=1)
    world.turn_until(lambda: phase(job) == "failed")
    world.turn_until(lambda: not Pod.objects.exclude(phase="failed").exists())
    job.refresh_from_db()
    assert (job.reason, job.retry_count) == ("DeadlineExceeded", 0)
    assert "time limit of 1 s" in job.message
    assert job.started_at
    assert job.deadline_at == job.started_at + timedelta(seconds=1)
    auditor.audit()


def test_time_counts_on_over_a_restart_also_before_it_is_let_in_again(world: World) -> None:
    job = submit(world, "again", ["sleep", "60"], seconds=600, active_deadline_seconds=3600)
    world.turn_until(lambda: phase(job) == "running")
    first = Job.objects.get(pk=job.pk).deadline_at
    services.command(job, LifecycleAction.RESTART_JOB, user=world.alice, now=clock.now())
    world.turn_until(lambda: phase(job) == "running" and Job.objects.get(pk=job.pk).version == 2)
    assert Job.objects.get(pk=job.pk).deadline_at == first
    other = submit(world, "other", ["sleep", "60"], replicas=4, seconds=600)
    services.command(job, LifecycleAction.RESTART_JOB, user=world.alice, now=clock.now())
    let_time_pass(job)
    world.turn_until(lambda: phase(job) == "failed" and phase(other) == "running")
    auditor.audit()


def test_a_job_that_is_aborted_gets_its_time_anew(world: World) -> None:
    job = submit(world, "paused", ["sleep", "60"], seconds=600, active_deadline_seconds=3600)
    world.turn_until(lambda: phase(job) == "running")
    first = Job.objects.get(pk=job.pk).deadline_at
    services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    world.turn_until(lambda: phase(job) == "aborted")
    assert Job.objects.get(pk=job.pk).deadline_at is None
    services.command(job, LifecycleAction.RESUME_JOB, user=world.alice, now=clock.now())
    world.turn_until(lambda: phase(job) == "running")
    again = Job.objects.get(pk=job.pk).deadline_at
    assert first
    assert again
    assert again > first
    let_time_pass(job)
    world.turn_until(lambda: phase(job) == "failed")
