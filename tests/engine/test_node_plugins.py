"""Where work goes: node groups, real use, NUMA cells, strategies by resource, cached data, machines that are kept."""

from dataclasses import replace

import pytest
from tests.engine.worlds import bound, decide, job, node, running, state

from hekla.domain.resources import Resources
from hekla.engine import cycle
from hekla.engine.decisions import Decisions
from hekla.engine.model import NodeGroupAffinity, NodeSpec, NodeUsage, Numa, NumaCell, PodGroupSpec, QueueSpec
from hekla.engine.policy import SchedulerPolicy, parse

GROUP = "volcano.sh/nodegroup-name"
LIMITS = "volcano.sh/nodegroup-resource-limits"


def policy(plugin: str, more: str = "") -> SchedulerPolicy:
    return parse(f"actions: allocate\ntiers: [{{plugins: [{{name: gang}}, {{name: predicates}}, {plugin}]}}]\n{more}")


def places(decisions: Decisions) -> list[str]:
    assert not decisions.faults
    return sorted(bind.node for bind in decisions.binds)


# Node groups.

GROUPS = [node(f"n{group}", "2", labels={GROUP: group}) for group in "abc"] + [node("free", "2")]


@pytest.mark.parametrize(
    ("affinity", "arguments", "reached"),
    [
        (None, "", set()),
        (None, "strict: false", {"free"}),
        (NodeGroupAffinity(required=("a", "b")), "", {"na", "nb"}),
        (NodeGroupAffinity(preferred=("c",)), "", {"nc"}),
        (NodeGroupAffinity(anti_required=("c",)), "", {"na", "nb"}),
        (NodeGroupAffinity(required=("a",), anti_required=("b",), anti_preferred=("b",)), "", {"na"}),
        (NodeGroupAffinity(required=("a",), anti_preferred=("b",)), "", {"na", "nb"}),
    ],
)
def test_a_queue_uses_its_groups(affinity: NodeGroupAffinity | None, arguments: str, reached: set[str]) -> None:
    jobs = [job(f"j{n}") for n in range(8)]
    plugin = policy(f"{{name: nodegroup, arguments: {{{arguments}}}}}")
    assert set(places(decide(GROUPS, jobs, [QueueSpec("q", affinity=affinity)], plugin))) == reached


def test_in_volcano_who_rather_avoids_may_use_what_must_not_be_used() -> None:
    queue = QueueSpec("q", affinity=NodeGroupAffinity(anti_required=("a",), anti_preferred=("a",)))
    plugin = policy("{name: nodegroup}", "compatibility: volcano")
    assert places(decide(GROUPS, [job("one")], [queue], plugin)) == ["na"]


@pytest.mark.parametrize(("arguments", "best"), [("", "na"), ("enablePreferredOrder: true", "nc")])
def test_preferred_groups_in_their_order(arguments: str, best: str) -> None:
    queue = QueueSpec("q", affinity=NodeGroupAffinity(preferred=("c", "a")))
    plugin = policy(f"{{name: nodegroup, arguments: {{{arguments}}}}}")
    assert places(decide(GROUPS, [job("one")], [queue], plugin)) == [best]


def test_a_queue_may_have_its_affinity_from_above() -> None:
    queues = [QueueSpec("top", affinity=NodeGroupAffinity(required=("b",))), QueueSpec("mid", parent="top")]
    queues.append(QueueSpec("q", parent="mid"))
    plugin = policy("{name: nodegroup, enableHierarchy: true}")
    assert places(decide(GROUPS, [job("one")], queues, plugin)) == ["nb"]


@pytest.mark.parametrize(
    ("limits", "reached"),
    [('{"a": {"cpu": "1"}}', ["na", "nb", "nb"]), ('{"a": {"memory": "1Gi"}}', ["na", "na", "nb"]), ("{", [])],
)
def test_a_queue_holds_no_more_of_a_group_than_it_may(limits: str, reached: list[str]) -> None:
    affinity = NodeGroupAffinity(required=("a", "b"), preferred=("a",))
    queue = QueueSpec("q", affinity=affinity, annotations={LIMITS: limits})
    jobs = [job(f"j{n}") for n in range(3)]
    assert places(decide(GROUPS, jobs, [queue], policy("{name: nodegroup}"))) == reached


# Real use.


def measured(name: str, cpu: float, memory: float, at: float = 1000.0) -> NodeSpec:
    return node(name, "8", usage=NodeUsage(cpu, memory, at))


def use(nodes: list[NodeSpec], jobs: list[PodGroupSpec], arguments: str = "", now: float = 1100.0) -> list[str]:
    return places(cycle(state(nodes, jobs), policy(f"{{name: usage, arguments: {{{arguments}}}}}"), now))


@pytest.mark.parametrize(
    ("busy", "now", "reached"),
    [
        (measured("a", 90, 10), 1100.0, "b"),
        (measured("a", 10, 90), 1100.0, "b"),
        (measured("a", 10, 10), 1100.0, "a"),
        (measured("a", 60, 60), 1100.0, "b"),
    ],
)
def test_busy_machines_get_nothing_and_idle_ones_are_liked(busy: NodeSpec, now: float, reached: str) -> None:
    assert use([busy, measured("b", 50, 50)], [job("one")], now=now) == [reached]


def test_old_figures_are_not_looked_at() -> None:
    assert use([measured("a", 99, 99)], [job("one")], now=2000.0) == ["a"]
    assert use([measured("a", 99, 99)], [job("one")]) == []


def test_thresholds_are_arguments_in_both_ways_of_writing() -> None:
    for arguments in ("thresholds: {cpu: 50}", "thresholds.cpu: 50"):
        assert use([measured("a", 60, 10)], [job("one")], arguments) == []


def test_what_was_just_placed_counts_before_it_is_measured() -> None:
    jobs = [job(f"j{n}", cpu="2") for n in range(4)]
    assert use([measured("a", 10, 10), measured("b", 10, 10)], jobs) == ["a", "a", "b", "b"]


# NUMA cells.

BEST = "best-effort"


def cells(name: str, *free: int, policy_name: str = "single-numa-node", cpu_policy: str = "static") -> NodeSpec:
    whole = Resources.parse({"cpu": "8"})
    made = tuple(NumaCell(whole, Resources.parse({"cpu": str(cpu)})) for cpu in free)
    return node(name, str(sum(free)), numa=Numa(policy_name, cpu_policy, made))


def bind_near(
    nodes: list[NodeSpec], cpu: str, wish: str = "single-numa-node", pods: int = 1, limit: str = ""
) -> list[str]:
    limits = Resources.parse({"cpu": limit or cpu})
    task = {"annotations": {"volcano.sh/numa-topology-policy": wish}, "limits": limits}
    return places(decide(nodes, [job("near", pods, cpu, task=task)], policy=policy("{name: numaaware}")))


@pytest.mark.parametrize(
    ("nodes", "cpu", "wish", "reached"),
    [
        ([cells("a", 3, 3), cells("b", 4, 1)], "4", "single-numa-node", ["b"]),
        ([cells("a", 3, 3)], "4", "single-numa-node", []),
        ([cells("a", 3, 3, policy_name="restricted")], "4", "restricted", []),
        ([cells("a", 8, 8, policy_name="restricted")], "12", "restricted", ["a"]),
        ([cells("a", 3, 3, policy_name=BEST)], "4", BEST, ["a"]),
        ([cells("a", 3, 3, policy_name=BEST), cells("b", 5, policy_name=BEST)], "4", BEST, ["b"]),
        ([cells("a", 8, policy_name="restricted")], "4", "single-numa-node", []),
        ([cells("a", 8, cpu_policy="none")], "4", "single-numa-node", []),
        ([node("a")], "4", "single-numa-node", []),
        ([node("a")], "4", "", ["a"]),
    ],
)  # fmt: skip
def test_cpus_lie_near_each_other(nodes: list[NodeSpec], cpu: str, wish: str, reached: list[str]) -> None:
    assert bind_near(nodes, cpu, wish) == reached


def test_pods_that_are_not_guaranteed_are_not_bound() -> None:
    assert bind_near([node("a")], "4", limit="6") == ["a"]


def test_what_the_session_places_is_taken_from_the_cells() -> None:
    assert bind_near([cells("a", 6, 6)], "4", pods=2) == ["a", "a"]
    assert bind_near([cells("a", 6, 6)], "4", pods=3) == []


# Strategies by resource.


def gpus(name: str, cpu: str, count: int) -> NodeSpec:
    return NodeSpec(name, Resources.parse({"cpu": cpu, "memory": "64Gi", "pods": "110", "gpu": str(count)}))


def asks(name: str, **more: object) -> PodGroupSpec:
    made = job(name, task=more.pop("task", {}))
    request = Resources.parse({"cpu": "1", "gpu": "1"})
    return replace(made, pods=tuple(replace(task, request=request) for task in made.pods))


STRATEGY = "{name: resource-strategy-fit, arguments: {resources: {gpu: {type: %s, weight: 1}}}}"


@pytest.mark.parametrize(("kind", "reached"), [("MostAllocated", "b"), ("LeastAllocated", "a")])
def test_each_resource_has_its_strategy(kind: str, reached: str) -> None:
    old = replace(asks("old", task={"node": "b", "status": "running"}))
    decisions = decide([gpus("a", "8", 4), gpus("b", "8", 4)], [old, asks("new")], policy=policy(STRATEGY % kind))
    assert places(decisions) == [reached]


def test_a_pod_may_ask_for_another_strategy() -> None:
    old = asks("old", task={"node": "b", "status": "running"})
    wish = {"annotations": {"volcano.sh/resource-strategy-scoring-type": "LeastAllocated"}}
    nodes = [gpus("a", "8", 4), gpus("b", "8", 4)]
    decisions = decide(nodes, [old, asks("new", task=wish)], policy=policy(STRATEGY % "MostAllocated"))
    assert places(decisions) == ["a"]


def test_cpu_is_kept_for_the_gpus_that_are_idle() -> None:
    plugin = policy(
        "{name: resource-strategy-fit, arguments: {proportional: {enable: true, resources: gpu,"
        " resourceProportion: {gpu.cpu: 2, gpu.memory: 1}}}}"
    )
    jobs = [job(f"j{n}") for n in range(8)]
    assert len(places(decide([gpus("a", "8", 2)], jobs, policy=plugin))) == 4
    assert len(places(decide([gpus("a", "8", 2)], [asks("a0"), asks("a1"), *jobs], policy=plugin))) == 8
    nodes = [gpus("a", "8", 2)]
    assert decide(nodes, jobs, policy=plugin).reasons["j7"][0].nodes == {"cpu and memory are kept for devices": 1}


def test_machines_with_scarce_resources_are_for_others() -> None:
    plugin = policy(
        "{name: resource-strategy-fit, arguments: {resourceStrategyFitWeight: 0, sra: {enable: true, resources: gpu}}}"
    )
    assert places(decide([gpus("a", "8", 2), node("b")], [job("one")], policy=plugin)) == ["b"]


# Data.


def test_work_goes_to_its_data() -> None:
    nodes = [node("a"), node("b", annotations={"hekla.io/cached-datasets": "faces, birds"})]
    nodes.append(node("c", annotations={"hekla.io/cached-datasets": "faces"}))
    plugin = policy("{name: data-locality}, {name: nodeorder}")
    wishes = {"plain": "", "birds": "birds", "faces": "faces,birds", "other": "fish"}
    jobs = [job(name, annotations={"hekla.io/datasets": wish}) for name, wish in wishes.items()]
    reached = {bind.job: bind.node for bind in decide(nodes, jobs, policy=plugin).binds}
    assert (reached["birds"], reached["faces"]) == ("b", "b")
    assert {reached["plain"], reached["other"]} <= {"a", "c"}


# Machines that are kept.

FULL = [running(f"old-{name}", 2, name) for name in "abc"]


def keep(
    jobs: list[PodGroupSpec], now: float = 1000.0, nodes: tuple[NodeSpec, ...] = (), more: str = ", {name: proportion}"
):
    queues = [QueueSpec("q", weight=3), QueueSpec("other")]
    world = state(list(nodes) or [node(name, "4") for name in "abc"], jobs, queues)
    return cycle(world, policy("{name: reservation}" + more), now)


def test_a_large_job_that_waits_gets_machines_kept_for_it() -> None:
    large = job("large", 2, "4", created_at=1.0)
    small = [job(f"s{n}", created_at=900.0, queue="other") for n in range(3)]
    assert places(keep([*FULL, large, *small], now=500.0)) == ["a", "a", "b"]
    decisions = keep([*FULL, large, *small])
    assert places(decisions) == ["c", "c"]
    assert decisions.reasons["s2"][0].nodes["reserved for a job that waits longer"] == 2


@pytest.mark.parametrize(("on", "count"), [("d", 0), ("a", 1)])
def test_the_other_jobs_of_its_queue_leave_it_its_share(on: str, count: int) -> None:
    """What ends on the machines that are kept is share that comes back."""
    queues = [QueueSpec("q", capability=Resources.parse({"cpu": "9"})), QueueSpec("other")]
    busy = [running(f"busy-{name}", 1, name, queue="other") for name in "abcd" if name != on]
    small = [job(f"s{n}", created_at=900.0) for n in range(6)]
    jobs = [*busy, running("old", 1, on), job("large", 2, "4", created_at=1.0), *small]
    world = state([node(name, "4") for name in "abcd"], jobs, queues)
    assert len(places(cycle(world, policy("{name: reservation}, {name: proportion}"), 1000.0))) == count


def test_it_starts_where_machines_were_kept() -> None:
    large = job("large", 2, "4", created_at=1.0)
    small = [job(f"s{n}", created_at=900.0, priority=5) for n in range(12)]
    assert bound(keep([large, *small]))["large"] == 2


def test_the_more_urgent_is_elected_then_the_one_that_waits_longest() -> None:
    jobs = [job("old", 1, "4", created_at=1.0), job("urgent", 1, "4", created_at=2.0, priority=5)]
    small = [job("s", created_at=990.0)]
    decisions = keep([running("busy", 2, "a"), *jobs, *small], nodes=(node("a", "4"),), more="")
    assert places(decisions) == []
    assert decisions.reasons["old"][0].nodes.get("reserved for a job that waits longer") == 1
    assert "reserved for a job that waits longer" not in decisions.reasons["urgent"][0].nodes


@pytest.mark.parametrize("wrong", [{"cpu": "5"}, {"pods": 9, "cpu": "4"}, {"task": {"node_selector": {"moon": "yes"}}}])
def test_nothing_is_kept_for_a_job_that_could_never_start(wrong: dict) -> None:
    never = job("never", **{"pods": 1, "cpu": "4", "created_at": 1.0} | wrong)
    assert len(places(keep([*FULL, never, *(job(f"s{n}", created_at=990.0) for n in range(6))]))) == 6


def test_a_gang_that_has_its_minimum_has_nothing_kept() -> None:
    elastic = replace(running("elastic", 3, "a", minimum=1, created_at=1.0))
    more = tuple(replace(t, status="pending", node="") if n else t for n, t in enumerate(elastic.pods))
    jobs = [replace(elastic, pods=more), job("s", 4, created_at=990.0)]
    assert bound(keep(jobs, nodes=(node("a", "5"),)))["s"] == 4
