"""Occupancy sums on pages equal the sums of the rows, whether recomputed or updated incrementally."""

from tests.controller.conftest import World
from tests.simulation.conftest import WorldFactory, settle, spec, submit

from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.domain.policies import LifecycleAction
from hekla.domain.resources import Resources
from hekla.lib import clock
from hekla.scheduling import occupancy
from hekla.scheduling.occupancy import Occupancy


def recomputed() -> Occupancy:
    """The occupancy as a new process computes it."""
    occupancy.forget()
    return occupancy.now()


def non_empty(one: Occupancy) -> tuple[dict, dict]:
    machines = {node: amounts for node, amounts in one.machines.items() if amounts}
    queues = {pk: use for pk, use in one.queues.items() if use.used or use.running or use.waiting}
    return machines, queues


def abort(world: World, job: Job) -> None:
    services.command(Job.objects.get(pk=job.pk), LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())


def test_incremental_sums_equal_the_sums_of_the_rows(found: WorldFactory) -> None:
    world = found({}, {})
    occupancy.now()
    small, large = submit(world, spec("small", 3)), submit(world, spec("large", 2, cpu="3"))
    waits = submit(world, spec("waits", 2, cpu="4"))
    for step in (
        lambda: settle(world),
        lambda: abort(world, small),
        lambda: settle(world),
        lambda: abort(world, waits),
        lambda: settle(world),
    ):
        step()
        incremental = occupancy.now()
        assert non_empty(incremental) == non_empty(recomputed())
    [use] = non_empty(incremental)[1].values()
    assert (use.used, use.running, use.waiting) == (Resources({"cpu": 6000, "pods": 2}), 1, 0)
    abort(world, large)
    settle(world)
    assert non_empty(occupancy.now()) == ({}, {})


def test_waiting_jobs_count_and_hold_nothing(found: WorldFactory) -> None:
    world = found({})
    submit(world, spec("runs", 1))
    submit(world, spec("waits", 1, cpu="4"))
    settle(world)
    [use] = occupancy.now().queues.values()
    assert (use.used, use.running, use.waiting) == (Resources({"cpu": 1000, "pods": 1}), 1, 1)


def test_nothing_is_recomputed_without_new_events(found: WorldFactory) -> None:
    world = found({})
    submit(world, spec("runs", 1))
    settle(world)
    before, after = occupancy.now(), occupancy.now()
    assert after.machines is before.machines
    assert after.number == before.number
