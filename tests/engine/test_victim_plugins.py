"""Victim plugins: disruption budgets, cooldown, colocation, rescheduling."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.engine.builders import bound, job, node, running, state

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


def preempt(cluster: ClusterState, plugin: str, compatibility: str = "hekla", now: float = 1000.0) -> set[str]:
    decisions = cycle(cluster, parse(POLICY % (compatibility, plugin)), now)
    assert not decisions.faults
    return {eviction.job for eviction in decisions.evictions}


def victims_of(cluster: ClusterState, plugin: str, now: float = 1000.0) -> list[str]:
    """The sorted uids of the pods that the plugin names as victims."""
    policy = parse(f"actions: allocate\ntiers: [{{plugins: [{{name: gang}}, {{name: predicates}}, {plugin}]}}]")
    session = Session(SchedulerCache.of(cluster), policy, now)
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


def cluster_with_budgets(budgets: list[DisruptionBudget], pods: int = 1) -> ClusterState:
    """Four jobs of one pod each fill a node; an urgent job needs some of their cores."""
    web = [labelled(f"web-{n}", {"app": "web"}) for n in range(2)]
    unlabelled = [labelled("batch", {"app": "batch"}), labelled("plain", {})]
    urgent = job("urgent", pods, priority=9, namespace="team")
    return replace(state([node("a", "4")], [*web, *unlabelled, urgent]), budgets=tuple(budgets))


@pytest.mark.parametrize(("allowed", "pods", "count"), [(0, 2, 2), (0, 3, 0), (1, 3, 3), (1, 4, 0), (2, 4, 4)])
def test_evictions_stay_within_the_disruption_budget(allowed: int, pods: int, count: int) -> None:
    gone = preempt(cluster_with_budgets([DisruptionBudget("team", APP, allowed)], pods), "pdb")
    assert len(gone) == count
    assert sum(name.startswith("web") for name in gone) <= allowed


def test_budgets_of_other_namespaces_do_not_apply() -> None:
    assert len(preempt(cluster_with_budgets([DisruptionBudget("elsewhere", (), 0)], 4), "pdb")) == 4


def test_volcano_never_evicts_pods_without_labels() -> None:
    plain_first = [labelled("plain", {}, priority=-1), labelled("batch", {"app": "batch"})]
    cluster = state([node("a", "2")], [*plain_first, job("urgent", priority=9, namespace="team")])
    assert preempt(cluster, "pdb", "volcano") == {"batch"}
    assert preempt(cluster, "pdb") == {"plain"}
    plain, *others = cluster.jobs
    with_others = replace(plain, pods=tuple(replace(task, has_more_labels=True) for task in plain.pods))
    assert preempt(replace(cluster, jobs=(with_others, *others)), "pdb", "volcano") == {"plain"}


def test_pods_without_a_budget_are_not_shuffled() -> None:
    assert victims_of(cluster_with_budgets([]), "{name: pdb}") == []


# Cooldown.


@pytest.mark.parametrize(
    ("cooldown", "now", "is_evicted"),
    [("10m", 1000.0, False), ("10m", 1600.0, True), ("soon", 1000.0, True), ("", 1000.0, True)],
)
@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_pod_is_protected_in_its_cooldown_time(cooldown: str, now: float, is_evicted: bool, field: str) -> None:
    fresh = running("fresh", 1, "a", minimum=0)
    task = replace(fresh.pods[0], scheduled_at=900.0, **{field: {"volcano.sh/cooldown-time": cooldown}})
    cluster = state([node("a", "1")], [replace(fresh, pods=(task,)), job("urgent", priority=9)])
    assert preempt(cluster, "cdp", now=now) == ({"fresh"} if is_evicted else set())


# Colocation of online and offline pods.

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
def test_only_offline_pods_use_oversubscription(jobs: list[PodGroupSpec], counts: dict[str, int]) -> None:
    assert bound(colocated([WIDE], jobs)) == counts


def test_without_the_annotation_there_is_no_oversubscription() -> None:
    assert bound(colocated([node("a", "4")], [offline("off", 8, minimum=1)])) == {"off": 4}
    broken = node("a", "4", annotations={"volcano.sh/oversubscription-cpu": "lots"})
    assert bound(colocated([broken], [offline("off", 8, minimum=1)])) == {"off": 4}


def test_offline_pods_are_evicted_first_and_never_evict_online_ones() -> None:
    jobs = [running("on", 2, "a", minimum=0), offline("off", 2, on="a", minimum=0, priority=5)]
    urgent = job("urgent", 1, priority=9)
    assert preempt(state([node("a", "4")], [*jobs, urgent]), "colocation") == {"off"}
    late = offline("late", 3, priority=9)
    assert preempt(state([node("a", "4")], [*jobs, late]), "colocation") == set()


def test_offline_pods_are_evicted_if_oversubscription_shrinks() -> None:
    jobs = [running("on", 4, "a"), offline("off", 4, on="a", minimum=0)]
    assert len(victims_of(state([WIDE], jobs), "{name: colocation}")) == 2
    assert victims_of(state([WIDE], [*jobs[:1], offline("off", 2, on="a")]), "{name: colocation}") == []


def test_non_preemptable_offline_pods_stay_and_others_are_evicted() -> None:
    off = offline("off", 4, on="a", minimum=0)
    partly_preemptable = replace(
        off, pods=tuple(replace(task, preemptable=number > 1) for number, task in enumerate(off.pods))
    )
    victims = victims_of(state([WIDE], [running("on", 4, "a"), partly_preemptable]), "{name: colocation}")
    assert victims == sorted(task.uid for task in partly_preemptable.pods[2:])


MEASURED = "{name: colocation, arguments: {oversubscription.cpu: 60, evictingCPUHighWatermark: 80}}"
LONG_AGO, MIB = -10_000.0, 2.0**20


def used(percent: float, **more: object) -> NodeSpec:
    """A node of ten cores, of which so many per cent are used now."""
    return node("a", "10", usage=NodeUsage(percent, 1, 1000.0, **more))


def since(group: PodGroupSpec, at: float) -> PodGroupSpec:
    return replace(group, pods=tuple(replace(pod, scheduled_at=at) for pod in group.pods))


def placed(here: NodeSpec, *groups: PodGroupSpec, plugin: str = MEASURED, now: float = 1000.0) -> int:
    """How many of ten offline pods of one core get room on this node."""
    text = f"actions: allocate\ntiers: [{{plugins: [{{name: gang}}, {{name: predicates}}, {plugin}]}}]"
    decisions = cycle(state([here], [*groups, offline("off", 10, minimum=1)]), parse(text), now)
    assert not decisions.faults
    return bound(decisions).get("off", 0)


FULL = since(running("on", 10, "a"), LONG_AGO)


@pytest.mark.parametrize(("percent", "pods"), [(0, 6), (20, 4), (25, 3), (60, 0), (90, 0)])
def test_offline_pods_use_what_online_pods_leave_idle_up_to_the_target(percent: float, pods: int) -> None:
    assert placed(used(percent), FULL) == pods


def test_oversubscription_by_usage_needs_a_target_and_a_fresh_measurement() -> None:
    assert placed(used(20), FULL, plugin="{name: colocation}") == 0
    assert placed(used(20), FULL, now=1301.0) == 0
    assert placed(replace(used(20), annotations={"volcano.sh/oversubscription-cpu": "1"}), FULL) == 1
    assert placed(used(20), since(running("on", 5, "a"), LONG_AGO)) == 5


def test_requests_outside_of_the_cluster_count_too() -> None:
    whole = used(20, whole=(20_000.0, 64 * 1024 * MIB))
    assert placed(whole, FULL) == 8


def test_new_pods_do_not_count_as_idle() -> None:
    assert placed(used(20), since(running("on", 10, "a"), 1000.0)) == 0
    first = placed(used(20), FULL)
    there = since(offline("first", first, on="a"), 1000.0)
    assert placed(used(20), FULL, there) == 0
    assert placed(used(20 + 10 * first), FULL, since(there, LONG_AGO)) == 0


def test_busy_node_loses_one_offline_pod_at_a_time() -> None:
    jobs = [FULL, *(since(offline(f"off-{n}", 1, on="a", priority=n), LONG_AGO) for n in range(4))]
    assert victims_of(state([used(79)], jobs), MEASURED) == []
    assert victims_of(state([used(81)], jobs), MEASURED) == ["off-0/0"]
    lately = replace(state([used(81)], jobs), last_shuffle_at=950.0)
    assert victims_of(lately, MEASURED) == []
    assert victims_of(lately, MEASURED, now=1010.0) == ["off-0/0"]
    assert victims_of(state([used(81)], jobs), MEASURED, now=1301.0) == [], "the measurement is too old"
    assert victims_of(state([used(81)], [FULL]), MEASURED) == []


def test_offline_pods_avoid_a_crowded_node_with_free_requests() -> None:
    assert placed(used(65), since(running("on", 2, "a"), LONG_AGO)) == 0
    text = f"actions: allocate\ntiers: [{{plugins: [{{name: gang}}, {{name: predicates}}, {MEASURED}]}}]"
    assert bound(cycle(state([used(65)], [job("on", 4, minimum=1)]), parse(text), 1000.0)) == {"on": 4}


# Rescheduling.

EVEN = (
    "{name: rescheduling, arguments: {interval: 5m, strategies: [{name: lowNodeUtilization,"
    " params: {thresholds: {cpu: 30}, targetThresholds: {cpu: 50}}}]}}"
)


def uneven(**more: object) -> ClusterState:
    jobs = [running(f"j{n}", 1, "a", minimum=0, priority=n) for n in range(8)]
    return replace(state([node("a", "8"), node("b", "8")], jobs), **more)


def test_lowest_priority_pods_leave_the_busy_node() -> None:
    assert victims_of(uneven(), EVEN) == ["j0/0", "j1/0", "j2/0", "j3/0"]


@pytest.mark.parametrize(("last", "count"), [(None, 4), (900.0, 0), (600.0, 4)])
def test_rescheduling_waits_for_its_interval(last: float | None, count: int) -> None:
    assert len(victims_of(uneven(last_shuffle_at=last), EVEN)) == count


def test_nothing_is_rescheduled_without_an_idle_node() -> None:
    cluster = uneven()
    crowded = [*cluster.jobs, *(running(f"b{n}", 1, "b") for n in range(3))]
    assert victims_of(replace(cluster, jobs=tuple(crowded)), EVEN) == []
    closed = replace(cluster, nodes=(cluster.nodes[0], replace(cluster.nodes[1], unschedulable=True)))
    assert victims_of(closed, EVEN) == []


def test_measured_usage_takes_precedence_over_requests() -> None:
    usage = (NodeUsage(10, 10, 900.0), NodeUsage(10, 10, 900.0))
    nodes = tuple(replace(one, usage=u) for one, u in zip(uneven().nodes, usage, strict=True))
    assert victims_of(uneven(nodes=nodes), EVEN) == []


def test_rescheduling_keeps_the_minimum_of_gangs() -> None:
    cluster = state([node("a", "8"), node("b", "8")], [running("gang", 8, "a", minimum=6)])
    assert len(victims_of(cluster, EVEN)) == 2
