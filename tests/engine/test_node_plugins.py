"""Node plugins: node groups, measured usage, NUMA, resource strategies, data locality, reservation."""

from dataclasses import replace

import pytest
from tests.engine.builders import bound, decide, job, node, running, state

from hekla.domain.resources import Resources
from hekla.engine import cycle
from hekla.engine.decisions import Decisions
from hekla.engine.model import NodeGroupAffinity, NodeSpec, NodeUsage, Numa, NumaCell, PodGroupSpec, QueueSpec
from hekla.engine.policy import SchedulerPolicy, parse

GROUP = "volcano.sh/nodegroup-name"
LIMITS = "volcano.sh/nodegroup-resource-limits"


def policy(plugin: str, more: str = "") -> SchedulerPolicy:
    return parse(f"actions: allocate\ntiers: [{{plugins: [{{name: gang}}, {{name: predicates}}, {plugin}]}}]\n{more}")


def used_nodes(decisions: Decisions) -> list[str]:
    assert not decisions.faults
    return sorted(bind.node for bind in decisions.binds)


# Node groups.

GROUPS = [node(f"n{group}", "2", labels={GROUP: group}) for group in "abc"] + [node("free", "2")]


@pytest.mark.parametrize(
    ("affinity", "arguments", "expected"),
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
def test_queue_uses_its_node_groups(affinity: NodeGroupAffinity | None, arguments: str, expected: set[str]) -> None:
    jobs = [job(f"j{n}") for n in range(8)]
    plugin = policy(f"{{name: nodegroup, arguments: {{{arguments}}}}}")
    assert set(used_nodes(decide(GROUPS, jobs, [QueueSpec("q", affinity=affinity)], plugin))) == expected


def test_volcano_lets_anti_preferred_override_anti_required() -> None:
    queue = QueueSpec("q", affinity=NodeGroupAffinity(anti_required=("a",), anti_preferred=("a",)))
    plugin = policy("{name: nodegroup}", "compatibility: volcano")
    assert used_nodes(decide(GROUPS, [job("one")], [queue], plugin)) == ["na"]


@pytest.mark.parametrize(("arguments", "best"), [("", "na"), ("enablePreferredOrder: true", "nc")])
def test_preferred_order_of_node_groups(arguments: str, best: str) -> None:
    queue = QueueSpec("q", affinity=NodeGroupAffinity(preferred=("c", "a")))
    plugin = policy(f"{{name: nodegroup, arguments: {{{arguments}}}}}")
    assert used_nodes(decide(GROUPS, [job("one")], [queue], plugin)) == [best]


def test_queue_inherits_its_affinity() -> None:
    queues = [QueueSpec("top", affinity=NodeGroupAffinity(required=("b",))), QueueSpec("mid", parent="top")]
    queues.append(QueueSpec("q", parent="mid"))
    plugin = policy("{name: nodegroup, enableHierarchy: true}")
    assert used_nodes(decide(GROUPS, [job("one")], queues, plugin)) == ["nb"]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [('{"a": {"cpu": "1"}}', ["na", "nb", "nb"]), ('{"a": {"memory": "1Gi"}}', ["na", "na", "nb"]), ("{", [])],
)
def test_resource_limits_of_a_node_group(limits: str, expected: list[str]) -> None:
    affinity = NodeGroupAffinity(required=("a", "b"), preferred=("a",))
    queue = QueueSpec("q", affinity=affinity, annotations={LIMITS: limits})
    jobs = [job(f"j{n}") for n in range(3)]
    assert used_nodes(decide(GROUPS, jobs, [queue], policy("{name: nodegroup}"))) == expected


# Measured usage.


def node_with_usage(name: str, cpu: float, memory: float, at: float = 1000.0) -> NodeSpec:
    return node(name, "8", usage=NodeUsage(cpu, memory, at))


def nodes_by_usage(
    nodes: list[NodeSpec], jobs: list[PodGroupSpec], arguments: str = "", now: float = 1100.0
) -> list[str]:
    return used_nodes(cycle(state(nodes, jobs), policy(f"{{name: usage, arguments: {{{arguments}}}}}"), now))


@pytest.mark.parametrize(
    ("busy", "now", "expected"),
    [
        (node_with_usage("a", 90, 10), 1100.0, "b"),
        (node_with_usage("a", 10, 90), 1100.0, "b"),
        (node_with_usage("a", 10, 10), 1100.0, "a"),
        (node_with_usage("a", 60, 60), 1100.0, "b"),
    ],
)
def test_busy_nodes_are_refused_and_idle_ones_preferred(busy: NodeSpec, now: float, expected: str) -> None:
    assert nodes_by_usage([busy, node_with_usage("b", 50, 50)], [job("one")], now=now) == [expected]


def test_measured_usage_passes() -> None:
    cluster = state([node_with_usage("a", 99, 99)], [job("one"), job("large", cpu="9")])
    reasons = cycle(cluster, policy("{name: usage}"), 1100.0).reasons
    assert {name: found[0].ever for name, found in reasons.items()} == {"one": True, "large": False}


def test_stale_usage_is_ignored() -> None:
    assert nodes_by_usage([node_with_usage("a", 99, 99)], [job("one")], now=2000.0) == ["a"]
    assert nodes_by_usage([node_with_usage("a", 99, 99)], [job("one")]) == []


def test_thresholds_as_mapping_or_dotted_key() -> None:
    for arguments in ("thresholds: {cpu: 50}", "thresholds.cpu: 50"):
        assert nodes_by_usage([node_with_usage("a", 60, 10)], [job("one")], arguments) == []


def test_just_placed_pods_count_before_they_are_measured() -> None:
    jobs = [job(f"j{n}", cpu="2") for n in range(4)]
    assert nodes_by_usage([node_with_usage("a", 10, 10), node_with_usage("b", 10, 10)], jobs) == ["a", "a", "b", "b"]


# NUMA cells.

BEST = "best-effort"


def numa_node(name: str, *free: int, policy_name: str = "single-numa-node", cpu_policy: str = "static") -> NodeSpec:
    whole = Resources.parse({"cpu": "8"})
    made = tuple(NumaCell(whole, Resources.parse({"cpu": str(cpu)})) for cpu in free)
    return node(name, str(sum(free)), numa=Numa(policy_name, cpu_policy, made))


def bind_near(
    nodes: list[NodeSpec],
    cpu: str,
    numa_policy: str = "single-numa-node",
    pods: int = 1,
    limit: str = "",
    memory: str = "1Gi",
) -> list[str]:
    size = {"cpu": cpu, "memory": memory}
    task = {
        "annotations": {"volcano.sh/numa-topology-policy": numa_policy},
        "request": Resources.parse(size),
        "limits": Resources.parse(size | ({"cpu": limit} if limit else {})),
    }
    return used_nodes(decide(nodes, [job("near", pods, cpu, task=task)], policy=policy("{name: numa-aware}")))


@pytest.mark.parametrize(
    ("nodes", "cpu", "numa_policy", "expected"),
    [
        ([numa_node("a", 3, 3), numa_node("b", 4, 1)], "4", "single-numa-node", ["b"]),
        ([numa_node("a", 3, 3)], "4", "single-numa-node", []),
        ([numa_node("a", 3, 3, policy_name="restricted")], "4", "restricted", []),
        ([numa_node("a", 8, 8, policy_name="restricted")], "12", "restricted", ["a"]),
        ([numa_node("a", 3, 3, policy_name=BEST)], "4", BEST, ["a"]),
        ([numa_node("a", 3, 3, policy_name=BEST), numa_node("b", 5, policy_name=BEST)], "4", BEST, ["b"]),
        ([numa_node("a", 8, policy_name="restricted")], "4", "single-numa-node", []),
        ([numa_node("a", 8, cpu_policy="none")], "4", "single-numa-node", []),
        ([node("a")], "4", "single-numa-node", []),
        ([node("a")], "4", "", ["a"]),
    ],
)  # fmt: skip
def test_cpus_fit_the_numa_policy(nodes: list[NodeSpec], cpu: str, numa_policy: str, expected: list[str]) -> None:
    assert bind_near(nodes, cpu, numa_policy) == expected


def test_numa_policy_applies_to_guaranteed_pods_only() -> None:
    assert bind_near([node("a")], "4") == []
    assert bind_near([node("a")], "4", limit="6") == ["a"]
    assert bind_near([node("a")], "4", memory="0") == ["a"]


def test_placed_pods_use_up_numa_cells() -> None:
    assert bind_near([numa_node("a", 6, 6)], "4", pods=2) == ["a", "a"]
    assert bind_near([numa_node("a", 6, 6)], "4", pods=3) == []


# Strategies by resource.


def gpu_node(name: str, cpu: str, count: int) -> NodeSpec:
    return NodeSpec(name, Resources.parse({"cpu": cpu, "memory": "64Gi", "pods": "110", "gpu": str(count)}))


def job_with_gpu(name: str, **more: object) -> PodGroupSpec:
    made = job(name, task=more.pop("task", {}))
    request = Resources.parse({"cpu": "1", "gpu": "1"})
    return replace(made, pods=tuple(replace(task, request=request) for task in made.pods))


STRATEGY = "{name: resource-strategy-fit, arguments: {resources: {gpu: {type: %s, weight: 1}}}}"


@pytest.mark.parametrize(("kind", "expected"), [("MostAllocated", "b"), ("LeastAllocated", "a")])
def test_each_resource_has_its_strategy(kind: str, expected: str) -> None:
    old = replace(job_with_gpu("old", task={"node": "b", "status": "running"}))
    decisions = decide(
        [gpu_node("a", "8", 4), gpu_node("b", "8", 4)], [old, job_with_gpu("new")], policy=policy(STRATEGY % kind)
    )
    assert used_nodes(decisions) == [expected]


def test_pod_annotation_overrides_the_strategy() -> None:
    old = job_with_gpu("old", task={"node": "b", "status": "running"})
    numa_policy = {"annotations": {"volcano.sh/resource-strategy-scoring-type": "LeastAllocated"}}
    nodes = [gpu_node("a", "8", 4), gpu_node("b", "8", 4)]
    decisions = decide(nodes, [old, job_with_gpu("new", task=numa_policy)], policy=policy(STRATEGY % "MostAllocated"))
    assert used_nodes(decisions) == ["a"]


def test_cpu_is_reserved_for_idle_gpus() -> None:
    plugin = policy(
        "{name: resource-strategy-fit, arguments: {proportional: {enable: true, resources: gpu,"
        " resourceProportion: {gpu.cpu: 2, gpu.memory: 1}}}}"
    )
    jobs = [job(f"j{n}") for n in range(8)]
    assert len(used_nodes(decide([gpu_node("a", "8", 2)], jobs, policy=plugin))) == 4
    assert (
        len(used_nodes(decide([gpu_node("a", "8", 2)], [job_with_gpu("a0"), job_with_gpu("a1"), *jobs], policy=plugin)))
        == 8
    )
    nodes = [gpu_node("a", "8", 2)]
    assert decide(nodes, jobs, policy=plugin).reasons["j7"][0].nodes == {"cpu and memory are kept for devices": 1}


def test_nodes_with_scarce_resources_are_avoided() -> None:
    plugin = policy(
        "{name: resource-strategy-fit, arguments: {resourceStrategyFitWeight: 0, sra: {enable: true, resources: gpu}}}"
    )
    assert used_nodes(decide([gpu_node("a", "8", 2), node("b")], [job("one")], policy=plugin)) == ["b"]


# Data locality.


def test_job_prefers_nodes_with_its_datasets() -> None:
    nodes = [node("a"), node("b", annotations={"hekla.io/cached-datasets": "faces, birds"})]
    nodes.append(node("c", annotations={"hekla.io/cached-datasets": "faces"}))
    plugin = policy("{name: data-locality}, {name: nodeorder}")
    datasets_by_job = {"plain": "", "birds": "birds", "faces": "faces,birds", "other": "fish"}
    jobs = [job(name, annotations={"hekla.io/datasets": numa_policy}) for name, numa_policy in datasets_by_job.items()]
    expected = {bind.job: bind.node for bind in decide(nodes, jobs, policy=plugin).binds}
    assert (expected["birds"], expected["faces"]) == ("b", "b")
    assert {expected["plain"], expected["other"]} <= {"a", "c"}


# Reservation.

FULL = [running(f"old-{name}", 2, name) for name in "abc"]


def decide_with_reservation(
    jobs: list[PodGroupSpec], now: float = 1000.0, nodes: tuple[NodeSpec, ...] = (), more: str = ", {name: proportion}"
):
    queues = [QueueSpec("q", weight=3), QueueSpec("other")]
    cluster = state(list(nodes) or [node(name, "4") for name in "abc"], jobs, queues)
    return cycle(cluster, policy("{name: reservation}" + more), now)


def test_nodes_are_reserved_for_a_large_waiting_job() -> None:
    large = job("large", 2, "4", created_at=1.0)
    small = [job(f"s{n}", created_at=900.0, queue="other") for n in range(3)]
    assert used_nodes(decide_with_reservation([*FULL, large, *small], now=500.0)) == ["a", "a", "b"]
    decisions = decide_with_reservation([*FULL, large, *small])
    assert used_nodes(decisions) == ["c", "c"]
    assert decisions.reasons["s2"][0].nodes["reserved for a job that waits longer"] == 2
    assert decisions.reasons["s2"][0].ever


@pytest.mark.parametrize(("on", "count"), [("d", 0), ("a", 1)])
def test_queue_share_is_reserved_for_the_waiting_job(on: str, count: int) -> None:
    """Pods that end on reserved nodes give their share back."""
    queues = [QueueSpec("q", capability=Resources.parse({"cpu": "9"})), QueueSpec("other")]
    busy = [running(f"busy-{name}", 1, name, queue="other") for name in "abcd" if name != on]
    small = [job(f"s{n}", created_at=900.0) for n in range(6)]
    jobs = [*busy, running("old", 1, on), job("large", 2, "4", created_at=1.0), *small]
    cluster = state([node(name, "4") for name in "abcd"], jobs, queues)
    assert len(used_nodes(cycle(cluster, policy("{name: reservation}, {name: proportion}"), 1000.0))) == count


def test_job_starts_on_its_reserved_nodes() -> None:
    large = job("large", 2, "4", created_at=1.0)
    small = [job(f"s{n}", created_at=900.0, priority=5) for n in range(12)]
    assert bound(decide_with_reservation([large, *small]))["large"] == 2


def test_reservation_is_by_priority_then_waiting_time() -> None:
    jobs = [job("old", 1, "4", created_at=1.0), job("urgent", 1, "4", created_at=2.0, priority=5)]
    small = [job("s", created_at=990.0)]
    decisions = decide_with_reservation([running("busy", 2, "a"), *jobs, *small], nodes=(node("a", "4"),), more="")
    assert used_nodes(decisions) == []
    assert decisions.reasons["old"][0].nodes.get("reserved for a job that waits longer") == 1
    assert "reserved for a job that waits longer" not in decisions.reasons["urgent"][0].nodes


@pytest.mark.parametrize("wrong", [{"cpu": "5"}, {"pods": 9, "cpu": "4"}, {"task": {"node_selector": {"moon": "yes"}}}])
def test_no_reservation_for_a_job_that_can_never_start(wrong: dict) -> None:
    never = job("never", **{"pods": 1, "cpu": "4", "created_at": 1.0} | wrong)
    assert (
        len(used_nodes(decide_with_reservation([*FULL, never, *(job(f"s{n}", created_at=990.0) for n in range(6))])))
        == 6
    )


def test_no_reservation_for_a_gang_with_its_minimum() -> None:
    elastic = replace(running("elastic", 3, "a", minimum=1, created_at=1.0))
    more = tuple(replace(t, status="pending", node="") if n else t for n, t in enumerate(elastic.pods))
    jobs = [replace(elastic, pods=more), job("s", 4, created_at=990.0)]
    assert bound(decide_with_reservation(jobs, nodes=(node("a", "5"),)))["s"] == 4
