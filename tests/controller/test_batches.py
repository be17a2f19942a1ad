"""A batch on machines that run its jobs."""

import pytest
from tests.controller.conftest import World

from hekla.apps.batches import selectors, services
from hekla.apps.jobs.models import Job
from hekla.domain.sweeps import SweepSpec
from hekla.lib import clock

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)


def test_its_jobs_take_turns_and_the_rest_is_stopped(world: World) -> None:
    task = {"name": "main", "command": ["sleep", "{{ n }}"], "resources": {"cpu": "2"}}
    spec = SweepSpec.parse({"name": "many", "parameters": {"n": [1, 2, 3, 4, 5]}, "job": {"tasks": [task]}})
    batch = services.submit_sweep(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    world.turn_until(lambda: Job.objects.filter(phase="running").count() == 2)
    services.stop(batch, user=world.alice, now=clock.now())
    world.turn_until(lambda: set(selectors.phase_counts([batch])[batch.pk]) <= {"aborted", "completed"})
    assert sum(selectors.phase_counts([batch])[batch.pk].values()) == 5
