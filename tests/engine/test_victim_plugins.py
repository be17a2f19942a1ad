"""Who has to go and who may not: budgets, cooldown, work online and offline, machines that are evened out."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.engine.worlds import bound, job, node, running, state

from hekla.engine import cycle, registry
from hekla.engine.constraints import Requirement
from hekla.engine.decisions import Decisions
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.model import ClusterState, DisruptionBudget, NodeSpec, NodeUsage, PodGroupSpec, PodStatus
from hekla.engine.policy import parse
from hekla.engine.scheduler_cache import SchedulerCache
from hekla.engine.session import Session

POLICY = (
    "actions: 'allocate, preempt'\ncompatibility: %s\n"
    "tiers: [{plugins: [{name: priority}, {name: %s}]}, {plugins: [{name: gang}, {name: predicates}]}]"
)


def preempt(world: ClusterState, plugin: str, compatibility: str = "hekla", now: float = 1000.0) -> set[str]:
    decisions = cycle(world, parse(POLICY % (compatibility, plugin)), now)
    assert not decisions.faults
    return {eviction.job for eviction in decisions.evictions}


def leaving(world: ClusterState, plugin: str, now: float = 1000.0) -> list[str]:
    """The tasks that the plugin names when it is asked for victims."""
    policy = parse(f"actions: allocate\ntiers: [{{plugins: [{{name: gang}}, {{name: predicates}}, {plugin}]}}]")
    session = Session(SchedulerCache.of(world), policy, now)
    for option in policy.tiers[0]:
        registry.plugins()[option.name].open_session(session, option)
    running = [pod for job in session.jobs.values() for pod in job.pods if pod.status is PodStatus.RUNNING]
    named = [victim.spec.uid for answer in session.functions(ExtensionPoint.VICTIM_TASKS) for victim in answer(running)]
    return sorted(named)


# Budgets.


def labelled(name: str, labels: Mapping[str, str], **more: object) -> PodGroupSpec:
    made = running(name, 1, "a", minimum=0, namespace="team", **more)
    return replace(made, pods=tuple(replace(task, labels=labels) for task in made.pods))


APP = (Requirement("app", "In", ("web",)),)


def crowd(budgets: list[DisruptionBudget], wanted: int = 1) -> ClusterState:
    """Four small tasks of one pod each fill a node; an urgent job wants some of their places."""
    web = [labelled(f"web-{n}", {"app": "web"}) for n in range(2)]
    others = [labelled("batch", {"app": "batch"}), labelled("plain", {})]
    urgent = job("urgent", wanted, priority=9, namespace="team")
    return replace(state([node("a", "4")], [*web, *others, urgent]), budgets=tuple(budgets))


@pytest.mark.parametrize(("allowed", "wanted", "count"), [(0, 2, 2), (0, 3, 0), (1, 3, 3), (1, 4, 0), (2, 4, 4)])
def test_no_more_go_than_a_budget_allows(allowed: int, wanted: int, count: int) -> None:
    gone = preempt(crowd([DisruptionBudget("team", APP, allowed)], wanted), "pdb")
    assert len(gone) == count
    assert sum(name.startswith("web") for name in gone) <= allowed


def test_budgets_of_other_namespaces_do_not_count() -> None:
    assert len(preempt(crowd([DisruptionBudget("elsewhere", (), 0)], 4), "pdb")) == 4


def test_in_volcano_pods_without_labels_never_go() -> None:
    plain_first = [labelled("plain", {}, priority=-1), labelled("batch", {"app": "batch"})]
    world = state([node("a", "2")], [*plain_first, job("urgent", priority=9, namespace="team")])
    assert preempt(world, "pdb", "volcano") == {"batch"}
    assert preempt(world, "pdb") == {"plain"}


def test_nobody_is_evicted_because_of_having_no_budget() -> None:
    assert leaving(crowd([]), "{name: pdb}") == []


# Cooldown.


@pytest.mark.parametrize(
    ("cooldown", "now", "goes"),
    [("10m", 1000.0, False), ("10m", 1600.0, True), ("soon", 1000.0, True), ("", 1000.0, True)],
)
@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_who_was_just_placed_stays_a_while(cooldown: str, now: float, goes: bool, where: str) -> None:
    fresh = running("fresh", 1, "a", minimum=0)
    task = replace(fresh.pods[0], scheduled_at=900.0, **{where: {"volcano.sh/cooldown-time": cooldown}})
    world = state([node("a", "1")], [replace(fresh, pods=(task,)), job("urgent", priority=9)])
    assert preempt(world, "cdp", now=now) == ({"fresh"} if goes else set())


# Online and offline.

OFFLINE = {"annotations": {"volcano.sh/qos-level": "BE"}}
WIDE = node("a", "4", annotations={"volcano.sh/oversubscription-cpu": "2"})


def offline(name: str, pods: int = 1, on: str = "", **more: object) -> PodGroupSpec:
    made = running(name, pods, on, **more) if on else job(name, pods, **more)
    return replace(made, pods=tuple(replace(task, **OFFLINE) for task in made.pods))


def colocated(nodes: list[NodeSpec], jobs: list[PodGroupSpec]) -> Decisions:
    text = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: colocation}]}]"
    decisions = cycle(state(nodes, jobs), parse(text), 0.0)
    assert not decisions.faults
    return decisions


@pytest.mark.parametrize(
    ("jobs", "counts"),
    [
        ([offline("off", 8, minimum=1)], {"off": 6}),
        ([job("on", 8, minimum=1)], {"on": 4}),
        ([job("on", 8, minimum=1), offline("off", 8, minimum=1)], {"on": 4, "off": 2}),
        ([offline("a-off", 6, minimum=1, priority=1), job("on", 4)], {"on": 4, "a-off": 2}),
    ],
)
def test_only_offline_work_uses_what_is_given_out_twice(jobs: list[PodGroupSpec], counts: dict[str, int]) -> None:
    assert bound(colocated([WIDE], jobs)) == counts


def test_without_the_annotation_all_share_the_machine_as_it_is() -> None:
    assert bound(colocated([node("a", "4")], [offline("off", 8, minimum=1)])) == {"off": 4}
    broken = node("a", "4", annotations={"volcano.sh/oversubscription-cpu": "lots"})
    assert bound(colocated([broken], [offline("off", 8, minimum=1)])) == {"off": 4}


def test_offline_work_goes_first_and_online_work_not_for_it() -> None:
    jobs = [running("on", 2, "a", minimum=0), offline("off", 2, on="a", minimum=0, priority=5)]
    urgent = job("urgent", 1, priority=9)
    assert preempt(state([node("a", "4")], [*jobs, urgent]), "colocation") == {"off"}
    late = offline("late", 3, priority=9)
    assert preempt(state([node("a", "4")], [*jobs, late]), "colocation") == set()


def test_offline_work_leaves_when_there_is_less_to_give_out() -> None:
    jobs = [running("on", 4, "a"), offline("off", 4, on="a", minimum=0)]
    assert len(leaving(state([WIDE], jobs), "{name: colocation}")) == 2
    assert leaving(state([WIDE], [*jobs[:1], offline("off", 2, on="a")]), "{name: colocation}") == []


def test_offline_work_that_is_not_preemptable_stays_and_other_leaves_in_its_stead() -> None:
    off = offline("off", 4, on="a", minimum=0)
    kept = replace(off, pods=tuple(replace(task, preemptable=number > 1) for number, task in enumerate(off.pods)))
    left = leaving(state([WIDE], [running("on", 4, "a"), kept]), "{name: colocation}")
    assert left == sorted(task.uid for task in kept.pods[2:])


# Machines that are evened out.

EVEN = (
    "{name: rescheduling, arguments: {interval: 5m, strategies: [{name: lowNodeUtilization,"
    " params: {thresholds: {cpu: 30}, targetThresholds: {cpu: 50}}}]}}"
)


def uneven(**more: object) -> ClusterState:
    jobs = [running(f"j{n}", 1, "a", minimum=0, priority=n) for n in range(8)]
    return replace(state([node("a", "8"), node("b", "8")], jobs), **more)


def test_the_least_important_leave_the_busy_machine() -> None:
    assert leaving(uneven(), EVEN) == ["j0/0", "j1/0", "j2/0", "j3/0"]


@pytest.mark.parametrize(("last", "count"), [(None, 4), (900.0, 0), (600.0, 4)])
def test_not_more_often_than_the_interval(last: float | None, count: int) -> None:
    assert len(leaving(uneven(last_shuffle_at=last), EVEN)) == count


def test_nobody_leaves_without_an_idle_machine() -> None:
    world = uneven()
    crowded = [*world.jobs, *(running(f"b{n}", 1, "b") for n in range(3))]
    assert leaving(replace(world, jobs=tuple(crowded)), EVEN) == []
    closed = replace(world, nodes=(world.nodes[0], replace(world.nodes[1], unschedulable=True)))
    assert leaving(closed, EVEN) == []


def test_what_was_measured_counts_more_than_what_was_asked_for() -> None:
    usage = (NodeUsage(10, 10, 900.0), NodeUsage(10, 10, 900.0))
    nodes = tuple(replace(one, usage=u) for one, u in zip(uneven().nodes, usage, strict=True))
    assert leaving(uneven(nodes=nodes), EVEN) == []


def test_gangs_are_not_cut_below_their_minimum() -> None:
    world = state([node("a", "8"), node("b", "8")], [running("gang", 8, "a", minimum=6)])
    assert len(leaving(world, EVEN)) == 2
