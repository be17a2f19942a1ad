"""Explanations are true: each kind of reason, its numbers, its holders and its offers, compared with the engine."""

import random
from datetime import timedelta
from functools import cache

import pytest
from tests.simulation.explained_scenes import PLAIN, SCENES, Scene
from tests.support.examples import examples

from hekla.apps.job_history import explanations, labels
from hekla.apps.jobs.models import Job
from hekla.bench.explanations import offers, week
from hekla.bench.explanations.offers import OfferResult
from hekla.bench.explanations.world import ExplainedCluster, cluster, job_spec
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase
from hekla.domain.resources import Resources, format_quantity
from hekla.simulation import descriptions, holders
from hekla.simulation.runtimes import RunTimes, key_of
from hekla.simulation.what_if import StartVerdict, WhatIfResult

LEAST_OFFERS, LEAST_RANGES = 0.95, 0.85
WITHOUT_SCENE = {
    # reasons of the controller, in tests/controller
    "leader_says", "spec_not_valid", "job_fault",
    # faults of a job, a plugin or the queues, in tests/engine
    "not_valid", "plugin_failed", "not_enough_pods", "queue_tree_not_ready", "victims_not_counted",
}  # fmt: skip


def placed(world: ExplainedCluster, job: Job) -> int:
    return sum(world.course.nodes(str(job.pk)).values())


@cache
def built(name: str) -> Scene:
    """A scene with the reasons on its job's row. Tests only copy its cluster."""
    scene = SCENES[name]()
    scene.world.explain(scene.job)
    return scene


@pytest.mark.parametrize("name", SCENES)
def test_scene(name: str) -> None:
    scene = built(name)
    world, job = scene.world, scene.job
    assert explanations.first(job) == scene.sentence
    assert set(scene.further) <= set(explanations.sentences(job))
    held = holders.held_for(world.course, job, job.waiting)
    assert {world.rows[uid].name for uid in held} == scene.holders
    before = placed(world, job)
    gone = scene.ends if scene.ends or scene.change else [row for row in world.rows.values() if row is not job]
    after = world.rebuilt(*gone, empty=scene.change)
    after.course.settle()
    assert (placed(after, job) > before) == bool(scene.ends or scene.change)
    found = OfferResult()
    assert found.count(world, job) == []


def test_every_kind_of_reason_has_a_scene() -> None:
    codes = {reason["code"] for name in SCENES for reason in built(name).job.waiting}
    assert codes | WITHOUT_SCENE == {*labels.CODES, "no_node_fits", "queue_share_used"}
    assert not codes & WITHOUT_SCENE


def test_what_is_free_and_what_is_held_make_up_all_there_is() -> None:
    checked = 0
    for world, waiting in offers.mixed_clusters(seed=2, number=examples(60, least=6)):
        for job in map(world.explain, waiting):
            for reason in job.waiting:
                if reason["code"] != "no_node_fits" or not reason["ever"] or "most" not in reason:
                    continue
                held = holders.held_for(world.course, job, [reason])
                most, free = Resources.parse(reason["most"]), Resources.parse(reason["free"])
                for name in labels.scarce_resources(reason):
                    checked += 1
                    assert free.amount(name) + sum(one.amount(name) for one in held.values()) == most.amount(name)
    assert checked


def starts_with(world: ExplainedCluster, job: Job, name: str, amount: float) -> bool:
    """Whether the job would start now with this amount of a resource."""
    other = world.rebuilt(job)
    return other.has_started(other.submit(sized(job, **{name: format_quantity(name, amount)})))


def sized(job: Job, **amounts: str) -> JobSpec:
    """The job's one pod with other amounts."""
    task = job.spec_in_hand.tasks[0]
    changed = task.model_copy(update={"resources": task.resources | amounts})
    return job.spec_in_hand.model_copy(update={"tasks": (changed,)})


def test_a_job_of_the_amount_that_is_free_starts_and_a_larger_one_does_not() -> None:
    """On clusters where only room is scarce."""
    dice, checked = random.Random(3), 0
    for _ in range(examples(100, least=10)):
        world = ExplainedCluster(cluster(*({"cpu": str(dice.randint(2, 6))} for _ in range(dice.randint(1, 3)))), PLAIN)
        for number in range(6):
            memory = {"memory": f"{dice.randint(1, 4)}Gi"}
            world.submit(job_spec(f"job-{number}", cpu=dice.choice(("500m", "1", "2", "3")), resources=memory))
        for job in [world.explain(row) for row in world.rows.values() if not world.has_started(row)]:
            reason = job.waiting[0]
            scarce = labels.scarce_resources(reason)
            if len(scarce) != 1 or not reason["ever"]:
                continue
            name, most = scarce[0], Resources.parse(reason["have"]).amount(scarce[0])
            checked += 1
            assert not starts_with(world, job, name, most + 100), reason
            if most and reason["usable"] == 1:  # of several nodes, the one with the most may lack something else
                assert starts_with(world, job, name, most), reason
    assert checked


def test_offered_changes_start_the_job() -> None:
    result = offers.measure(seed=4, number=examples(120, least=12))
    assert result.offers > 10
    assert result.share >= LEAST_OFFERS, result


@pytest.mark.parametrize(("days", "seed"), [(0.5, 1), pytest.param(7.0, 1, marks=pytest.mark.thorough)])
def test_predicted_ranges_hold(days: float, seed: int) -> None:
    result = week.run(seed, days)
    assert result.predicted > 10 * days
    assert result.share >= LEAST_RANGES, result.as_data()


def test_holders_are_named_with_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the reader may see them: jobs of other tenants are counted."""
    monkeypatch.setattr(holders.tenancy, "visible_ids", lambda _user: frozenset({1}))
    world = ExplainedCluster(cluster({"cpu": "6"}), PLAIN)
    hog = world.submit(job_spec("hog", cpu="2500m", command=["learn"]))
    world.submit(job_spec("short", active_deadline_seconds=600))
    world.submit(job_spec("secret"), tenant=2)
    job = world.submit(job_spec(cpu="2"))
    world.explain(job)
    world.course.now += timedelta(minutes=5)
    times = RunTimes({key_of(hog): [1200.0, 1500.0, 1800.0, 2100.0, 2400.0]})
    found = holders.visible(world.course, holders.held_for(world.course, job, job.waiting), job.owner, times)
    answer = WhatIfResult(StartVerdict.WAITS, holders=found)
    assert descriptions.in_use(answer, world.course.now) == [
        "Job hog holds 2.5 CPU for about 25 min more. Job short holds 1 CPU for at most 5 min more. "
        "1 job of other tenants holds 1 CPU."
    ]


def test_jobs_admitted_before_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """They explain why a job waits although there is room for it."""
    monkeypatch.setattr(holders.tenancy, "visible_ids", lambda _user: frozenset({1}))
    scene = built("jobs admitted before")
    course, job = scene.world.course, scene.job
    before = holders.admitted_before(course, job, job.waiting)
    admitted = holders.visible(course, before, job.owner, RunTimes())
    assert descriptions.in_use(WhatIfResult(StartVerdict.WAITS, admitted=admitted), course.now) == [
        "Job next was admitted before and waits for 1.5 CPU."
    ]
    monkeypatch.setattr(holders.tenancy, "visible_ids", lambda _user: frozenset())
    hidden = holders.visible(course, before, job.owner, RunTimes())
    assert descriptions.in_use(WhatIfResult(StartVerdict.WAITS, admitted=hidden), course.now) == [
        "1 other job was admitted before and waits for 1.5 CPU."
    ]


@pytest.mark.parametrize("phase", JobPhase)
def test_a_job_that_is_being_stopped_waits_for_nothing(phase: JobPhase) -> None:
    scene = SCENES["one node"]()
    job = scene.world.explain(scene.job)
    job.phase = phase
    is_explained = phase in (JobPhase.PENDING, JobPhase.RESTARTING, JobPhase.RUNNING)
    assert bool(explanations.first(job)) == bool(explanations.sentences(job)) == is_explained
