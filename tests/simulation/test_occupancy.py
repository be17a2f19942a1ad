"""The sums that pages show are those of the rows, however they were come by."""

from tests.controller.conftest import World
from tests.simulation.conftest import Found, settle, spec, submit

from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.domain.policies import LifecycleAction
from hekla.domain.resources import Resources
from hekla.lib import clock
from hekla.scheduling import occupancy
from hekla.scheduling.occupancy import Occupancy


def fresh() -> Occupancy:
    """As a process that begins now would read it."""
    occupancy.forget()
    return occupancy.now()


def held(one: Occupancy) -> tuple[dict, dict]:
    machines = {place: amounts for place, amounts in one.machines.items() if amounts}
    queues = {pk: use for pk, use in one.queues.items() if use.used or use.running or use.waiting}
    return machines, queues


def abort(world: World, job: Job) -> None:
    services.command(Job.objects.get(pk=job.pk), LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())


def test_sums_that_the_log_kept_up_are_those_of_the_rows(found: Found) -> None:
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
        kept = occupancy.now()
        assert held(kept) == held(fresh())
    [use] = held(kept)[1].values()
    assert (use.used, use.running, use.waiting) == (Resources({"cpu": 6000, "pods": 2}), 1, 0)
    abort(world, large)
    settle(world)
    assert held(occupancy.now()) == ({}, {})


def test_what_waits_is_counted_and_holds_nothing(found: Found) -> None:
    world = found({})
    submit(world, spec("runs", 1))
    submit(world, spec("waits", 1, cpu="4"))
    settle(world)
    [use] = occupancy.now().queues.values()
    assert (use.used, use.running, use.waiting) == (Resources({"cpu": 1000, "pods": 1}), 1, 1)


def test_nothing_is_made_anew_where_nothing_happened(found: Found) -> None:
    world = found({})
    submit(world, spec("runs", 1))
    settle(world)
    before, after = occupancy.now(), occupancy.now()
    assert after.machines is before.machines
    assert after.number == before.number
