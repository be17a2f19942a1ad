"""HyperNode objects: their members, what is wrong with them, and how they are listed."""

from collections.abc import Iterator
from typing import Any

import pytest

from hekla.backends.base import BackendError
from hekla.backends.kubernetes import hypernode_members, hypernodes
from hekla.backends.kubernetes.api import ApiError, Json
from hekla.backends.kubernetes.hypernode_members import HyperNodeResolver, Topology, parse_objects
from hekla.domain.network_topology import HyperNodeLevel

NODES = {
    "node-1": {"rack": "a"},
    "node-2": {"rack": "a", "fast": "yes"},
    "node-3": {"rack": "b"},
    "spare": {},
}


def exact(name: str) -> Json:
    return {"exactMatch": {"name": name}}


def regex(pattern: str) -> Json:
    return {"regexMatch": {"pattern": pattern}}


def labels(**selector: Any) -> Json:
    return {"labelMatch": selector}


def hypernode(name: str, tier: Any, *selectors: Json, children: tuple[str, ...] = (), tier_name: str = "") -> Json:
    members = [{"type": "Node", "selector": one} for one in selectors]
    members += [{"type": "HyperNode", "selector": exact(one)} for one in children]
    return {"metadata": {"name": name}, "spec": {"tier": tier, "tierName": tier_name, "members": members}}


def resolve(*objects: Json, nodes: dict[str, dict[str, str]] | None = None) -> Topology:
    return HyperNodeResolver().resolve(parse_objects(objects), NODES if nodes is None else nodes)


def names(topology: Topology) -> dict[str, list[str]]:
    """The hypernodes of each node that has some."""
    return {node: [level.name for level in path] for node, path in topology.levels.items() if path}


def faults(topology: Topology) -> list[str]:
    return [str(fault) for fault in topology.faults]


RACK = {"key": "rack", "operator": "In", "values": ["a", "b"]}
MEMBERS = [
    (exact("node-1"), {"node-1"}),
    (exact("elsewhere"), set()),
    (regex("node-[12]"), {"node-1", "node-2"}),
    (regex("^node-1$"), {"node-1"}),
    (regex("e"), {"node-1", "node-2", "node-3", "spare"}),
    (labels(matchLabels={"rack": "a"}), {"node-1", "node-2"}),
    (labels(matchLabels={"rack": "a", "fast": "yes"}), {"node-2"}),
    (labels(matchExpressions=[RACK]), {"node-1", "node-2", "node-3"}),
    (labels(matchLabels={"fast": "yes"}, matchExpressions=[RACK]), {"node-2"}),
    (labels(matchExpressions=[{"key": "rack", "operator": "NotIn", "values": ["a"]}]), {"node-3", "spare"}),
    (labels(matchExpressions=[{"key": "fast", "operator": "Exists"}]), {"node-2"}),
    (labels(matchExpressions=[{"key": "rack", "operator": "DoesNotExist"}]), {"spare"}),
    (labels(), set()),
]


@pytest.mark.parametrize(("selector", "expected"), MEMBERS)
def test_members_by_name_expression_and_labels(selector: Json, expected: set[str]) -> None:
    found = resolve(hypernode("one", 1, selector))
    assert (set(names(found)), faults(found)) == (expected, [])


def test_members_of_several_selectors_add_up() -> None:
    assert set(names(resolve(hypernode("one", 1, exact("spare"), regex("3"))))) == {"spare", "node-3"}


def test_levels_go_from_the_lowest_tier_to_the_highest() -> None:
    found = resolve(
        hypernode("zone", 3, exact("spare"), children=("left", "right"), tier_name="zone"),
        hypernode("left", 1, regex("[12]$"), tier_name="rack"),
        hypernode("right", 1, exact("node-3")),
    )
    assert names(found) == {
        "node-1": ["left", "zone"],
        "node-2": ["left", "zone"],
        "node-3": ["right", "zone"],
        "spare": ["zone"],
    }
    assert found.levels["node-1"] == (HyperNodeLevel("left", 1, "rack"), HyperNodeLevel("zone", 3, "zone"))
    assert found.levels["node-1"] is found.levels["node-2"]
    assert faults(found) == []


WRONG = [
    ("member", [hypernode("one", 1, exact("spare"), children=("one",))], {"spare": ["one"]}),
    ("member", [hypernode("one", 2, exact("spare"), children=("missing",))], {"spare": ["one"]}),
    ("expression", [hypernode("one", 1, exact("spare"), regex("("))], {"spare": ["one"]}),
    ("expression", [hypernode("one", 1, regex("(?=spare)"))], {}),
    ("expression", [hypernode("one", 1, regex("(node|spare){1001}"))], {}),
    ("expression", [hypernode("one", 1, regex("x" * 5000))], {}),
    ("invalid", [hypernode("one", 1, exact("spare"), labels(matchExpressions=[{**RACK, "operator": "Gt"}]))],
     {"spare": ["one"]}),
    ("invalid", [hypernode("one", 10**9, exact("spare"))], {}),
    ("invalid", [hypernode("one", "1", exact("spare"))], {}),
    ("invalid", [hypernode("one", 1, exact("spare"), tier_name="x" * 300)], {}),
    ("invalid", [hypernode("one", 1, {"exactMatch": 5})], {}),
    ("invalid", [hypernode("one", 1, labels(matchLabels=["rack"]))], {}),
    ("invalid", [{"metadata": {"name": "one"}, "spec": None}], {}),
    ("invalid", [{"metadata": {"name": "one"}}], {}),
]  # fmt: skip


@pytest.mark.parametrize(("problem", "objects", "expected"), WRONG)
def test_what_is_wrong_is_left_out_and_reported(
    problem: str, objects: list[Json], expected: dict[str, list[str]]
) -> None:
    other = hypernode("other", 5, exact("spare"))
    found = resolve(*objects, other)
    assert faults(found) == [f"{problem} one"]
    assert names(found) == {"spare": [*expected.get("spare", []), "other"]}


def test_loop_of_members_has_no_effect() -> None:
    found = resolve(
        hypernode("a", 1, exact("node-1"), children=("b",)), hypernode("b", 2, exact("node-2"), children=("a",))
    )
    assert names(found) == {"node-1": ["a", "b"], "node-2": ["b"]}
    assert faults(found) == ["member a"]


def test_overlap_is_reported_and_both_hypernodes_count() -> None:
    found = resolve(hypernode("a", 1, exact("node-1"), exact("node-2")), hypernode("b", 1, exact("node-2")))
    assert names(found) == {"node-1": ["a"], "node-2": ["a", "b"]}
    assert faults(found) == ["overlap b"]


def test_node_is_in_a_bounded_number_of_hypernodes() -> None:
    many = [hypernode(f"tier-{tier:03}", tier, exact("spare")) for tier in range(30)]
    found = resolve(*many)
    assert len(found.levels["spare"]) == hypernode_members.MAX_LEVELS
    assert faults(found)[0] == "too_many tier-016"


def test_number_of_objects_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hypernode_members, "MAX_HYPERNODES", 2)
    found = resolve(*(hypernode(f"h{number}", 1, exact(f"node-{number}")) for number in range(1, 5)))
    assert names(found) == {"node-1": ["h1"], "node-2": ["h2"]}
    assert faults(found) == ["too_many h3"]


def test_number_of_faults_is_bounded() -> None:
    assert len(faults(resolve(*(hypernode(f"h{number}", -1) for number in range(100))))) < 50


def test_expressions_follow_nodes_that_come_and_go() -> None:
    resolver, objects = HyperNodeResolver(), parse_objects([hypernode("one", 1, regex("^node"))])
    for expected in (["node-1", "node-2"], ["node-2", "node-3"], [], ["node-1"]):
        nodes = {name: NODES[name] for name in [*expected, "spare"]}
        assert list(names(resolver.resolve(objects, nodes))) == expected


class Server:
    """An API server with these objects, or an error."""

    def __init__(self, *objects: Json) -> None:
        self.objects, self.error, self.lists = list(objects), None, 0
        self.error: BackendError | None

    def pages(self, path: str, **_params: str) -> Iterator[Json]:
        assert path == "/apis/topology.volcano.sh/v1alpha1/hypernodes"
        self.lists += 1
        if self.error:
            raise self.error
        yield {"items": self.objects[:1]}
        yield {"items": self.objects[1:]}


def reader(server: Server) -> hypernodes.HyperNodes:
    return hypernodes.HyperNodes(server)  # type: ignore[arg-type]


def test_unchanged_nodes_have_the_very_same_hypernodes() -> None:
    server = Server(hypernode("a", 1, labels(matchLabels={"rack": "a"})), hypernode("b", 1, exact("node-3")))
    read = reader(server)
    first = read.of_nodes(NODES)
    assert read.of_nodes({name: {**own, "other": "label"} for name, own in NODES.items()}) is first
    later = read.of_nodes(NODES | {"spare": {"rack": "a"}})
    assert [level.name for level in later["spare"]] == ["a"]
    server.objects.pop()
    assert read.of_nodes(NODES)["node-3"] == ()


@pytest.mark.parametrize("status", [403, 404])
def test_cluster_without_such_objects_has_no_hypernodes(status: int) -> None:
    server = Server(hypernode("a", 1, regex("node")))
    read = reader(server)
    assert read.of_nodes(NODES)["node-1"]
    server.error = ApiError(status, "", "")
    assert not any(read.of_nodes(NODES).values())
    assert not any(read.of_nodes(NODES).values())
    assert server.lists == 2, "the server is not asked every time"


def test_hypernodes_stay_while_the_server_cannot_list_them() -> None:
    server = Server(hypernode("a", 1, regex("node")))
    read = reader(server)
    first = read.of_nodes(NODES)
    server.error = ApiError(500, "", "")
    assert read.of_nodes(NODES) is first


def test_problems_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    read = reader(Server(hypernode("a", 1, regex("("))))
    for nodes in (NODES, {}, NODES):
        read.of_nodes(nodes)
    assert caplog.text.count("expression a") == 1
