"""A job whose pod fails again waits before its restart, with real backends."""

from datetime import timedelta

import pytest
from tests.controller.conftest import World
from tests.support import auditor

from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.controller.controllers import controllers
from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock

RESTART = [{"events": ["PodFailed"], "action": "RestartPod"}]


@pytest.fixture(autouse=True)
def backoff(settings) -> None:
    """An hour would be too long for a back-off, so five minutes are the most that a restart waits."""
    settings.RESTART_BACKOFF = timedelta(hours=1)


def failing(world: World) -> Job:
    """A job that has failed twice and waits."""
    task = {"name": "main", "command": ["sh", "-c", "exit 3"], "resources": {"cpu": "1"}, "policies": RESTART}
    simulated = {"HEKLA_SIM_SECONDS": "0.1", "HEKLA_SIM_EXIT": "3"}
    spec = JobSpec.parse({"name": "bad", "max_retry": 5, "tasks": [{**task, "env": simulated}]})
    job = services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: Job.objects.get(pk=job.pk).restart_at is not None)
    return Job.objects.get(pk=job.pk)


def test_second_failure_in_a_row_delays_the_restart(world: World) -> None:
    job = failing(world)
    first, second = job.pods.order_by("attempt")
    assert (job.phase, job.retry_count) == ("restarting", 2)
    assert job.message.endswith("It waits 300 s, because the pod failed 2 times in a row.")
    assert abs(job.restart_at - second.finished_at - timedelta(minutes=5)) < timedelta(minutes=1)
    assert first.stopping
    assert second.stopping
    controllers.reset()  # another controller goes on waiting
    controllers.reconcile(world.cluster)
    assert job.pods.count() == 2
    Job.objects.update(restart_at=clock.now())
    controllers.reset()
    world.reconcile_until(lambda: job.pods.filter(attempt=3).exists())
    auditor.audit()


def test_restart_by_a_person_does_not_wait(world: World) -> None:
    job = failing(world)
    services.command(job, LifecycleAction.RESTART_POD, task="main", index=0, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: job.pods.filter(attempt=3).exists())
    job.refresh_from_db()
    assert job.retry_count in (2, 3)  # not counted; the third attempt may have failed by now
    auditor.audit()
