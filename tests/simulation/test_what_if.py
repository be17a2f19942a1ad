"""The preview of a draft equals what happens after its submission."""

import random
from datetime import timedelta

import pytest
from tests.controller.conftest import World
from tests.simulation.conftest import POLICY, WorldFactory, abort_and_settle, has_started, settle, spec, submit
from tests.support.examples import EVERY

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
from hekla.simulation.snapshot_cache import looking_at
from hekla.simulation.what_if import StartVerdict, WhatIfResult


def preview(world: World, job_spec: JobSpec) -> WhatIfResult:
    return what_if.predict_draft(job_spec, tenant=world.tenant, user=world.alice)


def test_job_with_room_starts_now_on_named_nodes(found: WorldFactory) -> None:
    answer = preview(found({}, {}), spec(replicas=6))
    assert (answer.verdict, sum(answer.nodes.values()), set(answer.nodes)) == (StartVerdict.NOW, 6, {"n0", "n1"})
    assert not Job.objects.exists()
    assert not Pod.objects.exists()


def test_job_without_room_waits_and_gets_offers(found: WorldFactory) -> None:
    world = found({})
    submit(world, spec("busy", replicas=3))
    settle(world)
    answer = preview(world, spec(replicas=2))
    assert (answer.verdict, answer.place, answer.line) == (StartVerdict.WAITS, 1, 1)
    assert answer.reasons
    assert {"worker.replicas=1", "worker.min_available=1"} <= set(map(str, answer.offers))


def test_job_larger_than_every_node_never_starts(found: WorldFactory) -> None:
    answer = preview(found({}), spec(cpu=5))
    assert (answer.verdict, bool(answer.problems)) == (StartVerdict.NEVER, True)
    assert "worker.resources.cpu=3700m" in map(str, answer.offers)


def test_offer_drops_a_selector_that_no_node_matches(found: WorldFactory) -> None:
    answer = preview(found({}), spec(node_selector={"zone": "moon"}))
    assert answer.verdict is StartVerdict.NEVER
    assert [str(offer) for offer in answer.offers] == ["worker.node_selector="]


def test_offer_combines_fewer_and_smaller_pods(found: WorldFactory) -> None:
    world = found({})
    submit(world, spec("busy", replicas=3))
    settle(world)
    assert "worker.replicas=1,worker.resources.cpu=1" in map(str, preview(world, spec(replicas=3, cpu=4)).offers)


def test_dependent_task_does_not_count_yet(found: WorldFactory) -> None:
    roles = [
        {"name": "ps", "command": ["true"], "resources": {"cpu": "3"}},
        {"name": "worker", "command": ["true"], "resources": {"cpu": "3"}, "depends_on": {"tasks": ["ps"]}},
    ]
    answer = preview(found({"cpu": "8"}), JobSpec.parse({"name": "draft", "tasks": roles}))
    assert (answer.verdict, answer.nodes) == (StartVerdict.NOW, {"n0": 1})


def test_offers_include_other_queues_of_the_same_cluster_kind(found: WorldFactory) -> None:
    world, size, now = found({}), {"cpu": "4", "memory": "8Gi", "pods": "20"}, clock.now()
    for name, kind in (("beside", "simulated"), ("real", "local")):
        cluster = clusters.create(name=name, kind=kind, config={}, actor=PLATFORM, now=now)
        clusters.observe_nodes(cluster, [NodeFacts(name, size, {})], now=now)
        queues.create(cluster=cluster, name=f"{name}-queue", actor=PLATFORM, now=now)
    submit(world, spec("busy", replicas=4))
    settle(world)
    offered = set(map(str, preview(world, spec()).offers))
    assert "queue=beside-queue" in offered
    assert "queue=real-queue" not in offered


@pytest.fixture(params=range(10 if EVERY == 1 else 2))
def dice(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(request.param)


def random_spec(dice: random.Random, name: str, **more) -> JobSpec:
    replicas = dice.randint(1, 4)
    least = dice.choice([None, dice.randint(1, replicas)])
    cpu = dice.choice(["500m", "1", "2", "3"])
    selector = dice.choice([{}, {}, {}, {"zone": dice.choice("ab")}])
    return spec(name, replicas, cpu=cpu, min_available=least, node_selector=selector, **more)


def random_platform(dice: random.Random, found: WorldFactory, **more) -> World:
    nodes = [{"cpu": str(dice.randint(2, 6)), "zone": dice.choice("ab")} for _ in range(dice.randint(1, 3))]
    world = found(*nodes, **more)
    for number in range(dice.randint(0, 5)):
        submit_if_possible(world, random_spec(dice, f"job-{number}", priority=dice.choice([0, 0, 5])))
    settle(world)
    return world


def submit_if_possible(world: World, job_spec: JobSpec) -> Job | None:
    try:
        return submit(world, job_spec)
    except Invalid:
        return None


def test_preview_and_offers_come_true(dice: random.Random, found: WorldFactory) -> None:
    world = random_platform(dice, found)
    job_spec = random_spec(dice, "draft")
    answer = preview(world, job_spec)
    job = submit_if_possible(world, job_spec)
    settle(world)
    assert (job is not None and has_started(job)) == (answer.verdict is StartVerdict.NOW), answer
    if job is not None:
        assert pods_by_node(job) == answer.nodes
        abort_and_settle(world, job)
    for number, offer in enumerate(answer.offers):
        changed = submit(world, apply_changes(job_spec, offer.changes).model_copy(update={"name": f"taken-{number}"}))
        settle(world)
        assert has_started(changed), offer
        abort_and_settle(world, changed)


def test_forecast_evictions_happen(dice: random.Random, found: WorldFactory) -> None:
    world = random_platform(dice, found, policy=POLICY)
    job_spec = random_spec(dice, "draft", priority=9)
    answer = preview(world, job_spec)
    before = LoggedEvent.objects.order_by("-id").values_list("id", flat=True).first() or 0
    job = submit_if_possible(world, job_spec)
    settle(world)
    assert (job is not None and has_started(job)) == (answer.verdict is StartVerdict.NOW), answer
    evicted = LoggedEvent.objects.filter(kind="PodEvicted", id__gt=before, payload__for_job=str(job.uid if job else ""))
    forecast_evictions = {f"job:{victim.uid}": victim.pods for victim in answer.evicts.known}
    if answer.verdict is StartVerdict.NOW:
        assert counts(evicted.values_list("subject", flat=True)) == forecast_evictions


def pods_by_node(job: Job) -> dict[str, int]:
    return counts(Pod.objects.filter(job=job).exclude(node="").values_list("node", flat=True))


def counts(names) -> dict[str, int]:
    names = list(names)
    return {name: names.count(name) for name in names}


def submit_as_other_tenant(world: World, job_spec: JobSpec) -> Job:
    """Submit a job of another user in another tenant."""
    now = clock.now()
    bob = accounts.create_user(username="bob", password=None, actor=PLATFORM, now=now)
    theirs = tenancy.create(slug="theirs", name="Theirs", actor=PLATFORM, now=now)
    tenancy.add_member(theirs, bob, "admin", actor=PLATFORM, now=now)
    return services.submit(spec=job_spec, tenant=theirs, user=bob, now=now)


def test_jobs_of_other_tenants_are_counted_but_not_named(found: WorldFactory) -> None:
    world = found({}, policy=POLICY)
    submit_as_other_tenant(world, spec("secret-plan", replicas=4, min_available=1, active_deadline_seconds=600))
    settle(world)
    evicts = preview(world, spec(priority=10, replicas=2)).evicts
    assert (evicts.known, evicts.unknown, evicts.pods) == ((), 1, 2)
    after = preview(world, spec(cpu=4)).after
    assert (after.known, after.unknown) == ((), 1)


@pytest.mark.parametrize(
    ("lever", "busy"),
    [
        ("replicas", 3),
        ("min_available", 4),
        pytest.param("replicas", 4, marks=pytest.mark.thorough),
        pytest.param("min_available", 3, marks=pytest.mark.thorough),
    ],
)
def test_offered_size_starts_the_waiting_job(found: WorldFactory, busy: int, lever: str) -> None:
    """Both for a job that waits for admission and for one whose pods wait for nodes."""
    world = found({"cpu": "5"})
    submit(world, spec("busy", replicas=busy))
    job = submit(world, spec("waits", replicas=3))
    settle(world)
    assert not has_started(job)
    offers = [offer.changes for offer in what_if.predict_job(job, user=world.alice).offers]
    offer_changes = next(changes for changes in offers if [change.lever for change in changes] == [lever])
    size = size_of(apply_changes(spec_of(job), offer_changes))
    services.scale(job, size, user=world.alice, now=clock.now())
    settle(world)
    assert has_started(job), offer_changes


def test_running_job_has_verdict_now(found: WorldFactory) -> None:
    world = found({})
    job = submit(world, spec("runs"))
    settle(world)
    assert what_if.predict_job(job, user=world.alice).verdict is StartVerdict.NOW


def answers_again(world: World, question: str = "course") -> bool:
    """Whether a result of an earlier query has to be found again."""
    with looking_at(world.cluster) as outlook:
        is_known = outlook.knows(question)
        outlook.once(question, object)
    return not is_known


@pytest.mark.parametrize(("plugin", "lasts"), [("gang", True), ("sla", False)])
def test_prediction_lasts_until_something_happens(
    found: WorldFactory, monkeypatch: pytest.MonkeyPatch, plugin: str, lasts: bool
) -> None:
    world = found({}, policy=POLICY.replace("{name: gang}", f"{{name: {plugin}}}"))
    assert answers_again(world)
    assert not answers_again(world)
    now = clock.now
    monkeypatch.setattr(clock, "now", lambda: now() + timedelta(minutes=4))
    assert answers_again(world) is not lasts
    submit(world, spec("other"))
    assert answers_again(world)
    monkeypatch.setattr(clock, "now", lambda: now() + timedelta(minutes=10))
    assert answers_again(world)
