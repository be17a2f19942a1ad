"""Scheduled jobs on a cluster."""

from datetime import timedelta

import pytest
from tests.controller.conftest import World

from hekla.apps.jobs.models import Job
from hekla.apps.schedules import selectors, services
from hekla.apps.schedules.models import Schedule
from hekla.domain.schedules import ScheduleSpec
from hekla.lib import clock

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)
HOUR = timedelta(hours=1)


def make(world: World, **changes: object) -> Schedule:
    job = {"tasks": [{"name": "main", "command": ["sleep", "600"], "resources": {"cpu": "1"}}]}
    spec = ScheduleSpec.parse({"name": "hourly", "cron": "0 * * * *", "job": job, **changes})
    return services.create(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now() - 3 * HOUR)


def test_scheduled_job_runs(world: World) -> None:
    make(world)
    services.start_due(now=clock.now())
    job = Job.objects.get()
    world.reconcile_until(lambda: Job.objects.get(pk=job.pk).phase == "running")


def test_replaced_run_is_terminated_and_deleted(world: World) -> None:
    schedule = make(world, concurrency="Replace", failed_jobs_history_limit=0)
    due = selectors.spec_of(schedule).next_times(schedule.looked_at, 2)
    services.start_due(now=due[0])
    first = Job.objects.get()
    world.reconcile_until(lambda: Job.objects.get(pk=first.pk).phase == "running")
    services.start_due(now=due[1])
    second = Job.objects.exclude(pk=first.pk).get()
    world.reconcile_until(lambda: Job.objects.get(pk=second.pk).phase == "running")
    world.reconcile_until(lambda: Job.objects.get(pk=first.pk).phase == "terminated")
    assert services.tidy(now=clock.now()) == 1
    assert Job.objects.get(deleted_at=None) == second
