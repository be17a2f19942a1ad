"""The `nodeorder` plugin: Kubernetes' scorers, tested with Kubernetes objects."""

import pytest
from tests.engine.kubernetes import Object, document, node, node_fit, pod

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ALL = (
    "leastrequested", "mostrequested", "balancedresource", "nodeaffinity",
    "podaffinity", "tainttoleration", "imagelocality", "podtopologyspread",
)  # fmt: skip
NODES = [node("a1", "za"), node("a2", "za"), node("b1", "zb"), node("c1")]
APP = {"matchLabels": {"app": "x"}}


def scores(
    scorer: str, waiting: Object, running: list[Object] | None = None, nodes: list[Object] = NODES
) -> list[float]:
    """The scores of one scorer alone, for each feasible node."""
    weights = {f"{name}.weight": int(name == scorer) for name in ALL}
    plugins = [{"name": "predicates"}, {"name": "nodeorder", "arguments": weights}]
    _, found = node_fit(document(nodes, [waiting, *(running or [])], plugins=plugins))
    return list(found.scores(found.feasible))


def prefer_nodes(*terms: tuple[int, str, str]) -> Object:
    preferences = [
        {"weight": w, "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}}
        for w, key, value in terms
    ]
    return {"nodeAffinity": {PREFERRED: preferences}}


def prefer_pods(kind: str, weight: int, topology: str = "zone") -> Object:
    return {kind: {PREFERRED: [{"weight": weight, "podAffinityTerm": {"labelSelector": APP, "topologyKey": topology}}]}}


def test_least_requested_and_most_requested() -> None:
    nodes, running = [node("a", cpu="4"), node("b", cpu="4")], [pod("t", "a"), pod("u", "a")]
    assert scores("leastrequested", pod("p"), running, nodes) == [60, 86]
    assert scores("mostrequested", pod("p"), running, nodes) == [39, 13]


def test_container_without_requests_counts_with_defaults() -> None:
    nothing = pod("t", "a", containers=[{"name": "c"}])
    nodes = [node("a", cpu="1"), node("b", cpu="1")]
    waiting = pod("p", containers=[{"name": "c", "resources": {"requests": {"memory": "1Gi"}}}])
    assert scores("leastrequested", waiting, [nothing], nodes) == [86, 91]


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        ({}, [0, 0, 0, 0]),
        (prefer_nodes((10, "zone", "za")), [100, 100, 0, 0]),
        (prefer_nodes((30, "zone", "za"), (60, "zone", "zb")), [50, 50, 100, 0]),
        (prefer_nodes((20, "zone", "za"), (10, "kubernetes.io/hostname", "a1")), [100, 66, 0, 0]),
    ],
)
def test_preferred_node_affinity(affinity: Object, expected: list[float]) -> None:
    assert scores("nodeaffinity", pod("p", affinity=affinity)) == expected


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        ({}, [0, 0, 0, 0]),
        (prefer_pods("podAffinity", 10), [100, 100, 50, 0]),
        (prefer_pods("podAntiAffinity", 10), [0, 0, 50, 100]),
        (prefer_pods("podAffinity", 1, "kubernetes.io/hostname"), [100, 100, 100, 0]),
    ],
)
def test_preferred_pod_affinity(affinity: Object, expected: list[float]) -> None:
    running = [pod(f"t-{on}", on, {"app": "x"}) for on in ("a1", "a2", "b1")]
    assert scores("podaffinity", pod("p", affinity=affinity), running) == expected


def test_preferences_of_running_pods_count() -> None:
    running = [pod("t", "b1", affinity=prefer_pods("podAntiAffinity", 10))]
    assert scores("podaffinity", pod("p", labels={"app": "x"}), running) == [100, 100, 0, 100]
    assert scores("podaffinity", pod("p", labels={"app": "y"}), running) == [0, 0, 0, 0]


def test_soft_taints_are_avoided() -> None:
    taints = [{"key": key, "effect": "PreferNoSchedule"} for key in ("k", "l")]
    nodes = [node("both", taints=taints), node("none"), node("one", taints=taints[:1])]
    assert scores("tainttoleration", pod("p"), nodes=nodes) == [0, 100, 50]
    tolerant = pod("p", tolerations=[{"operator": "Exists"}])
    assert scores("tainttoleration", tolerant, nodes=nodes) == [100, 100, 100]


def test_nodes_with_the_image_are_preferred() -> None:
    def with_image(name: str, size: int) -> Object:
        images = [{"names": ["registry/tool:latest"], "sizeBytes": size}] if size else []
        found = node(name)
        return found | {"status": found["status"] | {"images": images}}

    waiting = pod("p", containers=[{"name": "c", "image": "registry/tool"}])
    nodes = [with_image("big", 3 * 2**30), with_image("none", 0), with_image("small", 2**20)]
    assert scores("imagelocality", waiting, nodes=nodes) == [100, 0, 0]


@pytest.mark.parametrize(
    ("topology", "expected"),
    [("zone", [33, 33, 100, 0]), ("kubernetes.io/hostname", [0, 100, 50, 100])],
)
def test_soft_topology_spread(topology: str, expected: list[float]) -> None:
    constraint = {"maxSkew": 1, "topologyKey": topology, "labelSelector": APP, "whenUnsatisfiable": "ScheduleAnyway"}
    running = [pod(f"t{i}", on, {"app": "x"}) for i, on in enumerate(("a1", "a1", "b1"))]
    assert scores("podtopologyspread", pod("p", topologySpreadConstraints=[constraint]), running) == expected
