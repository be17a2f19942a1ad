"""What is foretold of a draft is what happens when it is submitted."""

import random

import pytest
from tests.controller.conftest import World
from tests.simulation.conftest import POLICY, Found, begun, end, settle, spec, submit

from hekla.apps.accounts import services as accounts
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import NodeFacts
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.apps.tenancy import services as tenancy
from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec
from hekla.domain.spec_changes import apply_changes, size_of
from hekla.lib import clock
from hekla.simulation import what_if
from hekla.simulation.what_if import Answer, StartVerdict


def ask(world: World, wanted: JobSpec) -> Answer:
    return what_if.about_draft(wanted, tenant=world.tenant, user=world.alice)


def test_a_job_that_has_room_starts_now_and_it_is_told_where(found: Found) -> None:
    answer = ask(found({}, {}), spec(replicas=6))
    assert (answer.verdict, sum(answer.nodes.values()), set(answer.nodes)) == (StartVerdict.NOW, 6, {"n0", "n1"})
    assert not Job.objects.exists()
    assert not Pod.objects.exists()


def test_a_job_without_room_waits_and_is_offered_what_would_start(found: Found) -> None:
    world = found({})
    submit(world, spec("busy", replicas=3))
    settle(world)
    answer = ask(world, spec(replicas=2))
    assert (answer.verdict, answer.place, answer.line) == (StartVerdict.WAITS, 1, 1)
    assert answer.reasons
    assert {"worker.replicas=1", "worker.min_available=1"} <= set(map(str, answer.offers))


def test_a_job_larger_than_every_machine_never_starts(found: Found) -> None:
    answer = ask(found({}), spec(cpu=5))
    assert (answer.verdict, bool(answer.problems)) == (StartVerdict.NEVER, True)
    assert "worker.resources.cpu=3700m" in map(str, answer.offers)


def test_labels_that_no_node_has_are_told_and_may_be_dropped(found: Found) -> None:
    answer = ask(found({}), spec(node_selector={"zone": "moon"}))
    assert answer.verdict is StartVerdict.NEVER
    assert [str(offer) for offer in answer.offers] == ["worker.node_selector="]


def test_pods_may_have_to_be_fewer_and_smaller(found: Found) -> None:
    world = found({})
    submit(world, spec("busy", replicas=3))
    settle(world)
    assert "worker.replicas=1,worker.resources.cpu=1" in map(str, ask(world, spec(replicas=3, cpu=4)).offers)


def test_whoever_begins_after_another_is_not_asked_for_yet(found: Found) -> None:
    roles = [
        {"name": "ps", "command": ["true"], "resources": {"cpu": "3"}},
        {"name": "worker", "command": ["true"], "resources": {"cpu": "3"}, "depends_on": {"tasks": ["ps"]}},
    ]
    answer = ask(found({"cpu": "8"}), JobSpec.parse({"name": "draft", "tasks": roles}))
    assert (answer.verdict, answer.nodes) == (StartVerdict.NOW, {"n0": 1})


def test_other_queues_are_offered_but_not_those_of_another_kind_of_machines(found: Found) -> None:
    world, size, now = found({}), {"cpu": "4", "memory": "8Gi", "pods": "20"}, clock.now()
    for name, kind in (("beside", "simulated"), ("real", "local")):
        cluster = clusters.create(name=name, kind=kind, config={}, actor=PLATFORM, now=now)
        clusters.observe_nodes(cluster, [NodeFacts(name, size, {})], now=now)
        queues.create(cluster=cluster, name=f"{name}-queue", actor=PLATFORM, now=now)
    submit(world, spec("busy", replicas=4))
    settle(world)
    offered = set(map(str, ask(world, spec()).offers))
    assert "queue=beside-queue" in offered
    assert "queue=real-queue" not in offered


@pytest.fixture(params=range(10))
def luck(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(request.param)


def some_spec(luck: random.Random, name: str, **more) -> JobSpec:
    replicas = luck.randint(1, 4)
    least = luck.choice([None, luck.randint(1, replicas)])
    cpu = luck.choice(["500m", "1", "2", "3"])
    selector = luck.choice([{}, {}, {}, {"zone": luck.choice("ab")}])
    return spec(name, replicas, cpu=cpu, min_available=least, node_selector=selector, **more)


def some_world(luck: random.Random, found: Found, **more) -> World:
    nodes = [{"cpu": str(luck.randint(2, 6)), "zone": luck.choice("ab")} for _ in range(luck.randint(1, 3))]
    world = found(*nodes, **more)
    for number in range(luck.randint(0, 5)):
        submit_if_possible(world, some_spec(luck, f"job-{number}", priority=luck.choice([0, 0, 5])))
    settle(world)
    return world


def submit_if_possible(world: World, wanted: JobSpec) -> Job | None:
    try:
        return submit(world, wanted)
    except Invalid:
        return None


def test_what_is_foretold_and_what_is_offered_comes_true(luck: random.Random, found: Found) -> None:
    world = some_world(luck, found)
    wanted = some_spec(luck, "draft")
    answer = ask(world, wanted)
    job = submit_if_possible(world, wanted)
    settle(world)
    assert (job is not None and begun(job)) == (answer.verdict is StartVerdict.NOW), answer
    if job is not None:
        assert places(job) == answer.nodes
        end(world, job)
    for number, offer in enumerate(answer.offers):
        changed = submit(world, apply_changes(wanted, offer.changes).model_copy(update={"name": f"taken-{number}"}))
        settle(world)
        assert begun(changed), offer
        end(world, changed)


def test_who_is_foretold_to_be_evicted_is_evicted(luck: random.Random, found: Found) -> None:
    world = some_world(luck, found, policy=POLICY)
    wanted = some_spec(luck, "draft", priority=9)
    answer = ask(world, wanted)
    before = LoggedEvent.objects.order_by("-id").values_list("id", flat=True).first() or 0
    job = submit_if_possible(world, wanted)
    settle(world)
    assert (job is not None and begun(job)) == (answer.verdict is StartVerdict.NOW), answer
    evicted = LoggedEvent.objects.filter(kind="PodEvicted", id__gt=before, payload__for_job=str(job.uid if job else ""))
    told = {f"job:{victim.uid}": victim.pods for victim in answer.evicts.known}
    if answer.verdict is StartVerdict.NOW:
        assert counted(evicted.values_list("subject", flat=True)) == told


def places(job: Job) -> dict[str, int]:
    return counted(Pod.objects.filter(job=job).exclude(node="").values_list("node", flat=True))


def counted(names) -> dict[str, int]:
    names = list(names)
    return {name: names.count(name) for name in names}


def of_others(world: World, wanted: JobSpec) -> Job:
    """A job of somebody else, in a tenant of theirs."""
    now = clock.now()
    bob = accounts.create_user(username="bob", password=None, actor=PLATFORM, now=now)
    theirs = tenancy.create(slug="theirs", name="Theirs", actor=PLATFORM, now=now)
    tenancy.add_member(theirs, bob, "admin", actor=PLATFORM, now=now)
    return services.submit(spec=wanted, tenant=theirs, user=bob, now=now)


def test_jobs_of_other_tenants_are_counted_and_never_named(found: Found) -> None:
    world = found({}, policy=POLICY)
    of_others(world, spec("secret-plan", replicas=4, min_available=1, active_deadline_seconds=600))
    settle(world)
    evicts = ask(world, spec(priority=10, replicas=2)).evicts
    assert (evicts.known, evicts.unknown, evicts.pods) == ((), 1, 2)
    after = ask(world, spec(cpu=4)).after
    assert (after.known, after.unknown) == ((), 1)


@pytest.mark.parametrize("lever", ["replicas", "min_available"])
@pytest.mark.parametrize("busy", [3, 4])
def test_a_change_of_size_that_a_waiting_job_is_offered_starts_it(found: Found, busy: int, lever: str) -> None:
    """Whether it waits to be let in, or for places of pods that it has."""
    world = found({"cpu": "5"})
    submit(world, spec("busy", replicas=busy))
    job = submit(world, spec("waits", replicas=3))
    settle(world)
    assert not begun(job)
    offers = [offer.changes for offer in what_if.about_job(job, user=world.alice).offers]
    taken = next(changes for changes in offers if [change.lever for change in changes] == [lever])
    size = size_of(apply_changes(spec_of(job), taken))
    services.scale(job, size, user=world.alice, now=clock.now())
    settle(world)
    assert begun(job), taken


def test_a_job_that_has_begun_waits_for_nothing(found: Found) -> None:
    world = found({})
    job = submit(world, spec("runs"))
    settle(world)
    assert what_if.about_job(job, user=world.alice).verdict is StartVerdict.NOW
