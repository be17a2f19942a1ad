"""A batch of jobs on a cluster."""

import pytest
from tests.controller.conftest import World

from hekla.apps.batches import selectors, services
from hekla.apps.jobs.models import Job
from hekla.domain.sweeps import SweepSpec
from hekla.lib import clock

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)


def test_batch_runs_as_many_jobs_as_fit_and_stops_the_rest(world: World) -> None:
    task = {"name": "main", "command": ["sleep", "{{ n }}"], "resources": {"cpu": "2"}}
    spec = SweepSpec.parse({"name": "many", "parameters": {"n": [1, 2, 3, 4, 5]}, "job": {"tasks": [task]}})
    batch = services.submit_sweep(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: Job.objects.filter(phase="running").count() == 2)
    services.stop(batch, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: set(selectors.phase_counts([batch])[batch.pk]) <= {"aborted", "completed"})
    assert sum(selectors.phase_counts([batch])[batch.pk].values()) == 5
