"""Gangs with a network topology constraint are placed hypernode by hypernode."""

from dataclasses import replace

import pytest
from tests.engine import builders

from hekla.engine import cycle
from hekla.engine.decisions import Decisions
from hekla.engine.model import ClusterState, HyperNode, NetworkTopology, PodGroupSpec, PodSpec, SubGroupPolicy
from hekla.engine.policy import parse

POLICY = parse("""\
actions: "allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: network-topology-aware
""")
RACKS = {"r0": ("a0", "a1"), "r1": ("b0", "b1"), "r2": ("c0", "c1")}
HALLS = {"h0": ("r0", "r1"), "h1": ("r2",)}
CLOSE = NetworkTopology(highest_tier=1)
HALL = NetworkTopology(highest_tier=2)
SOFT = NetworkTopology(is_hard=False)


def decide(*jobs: PodGroupSpec, cpu: str = "2") -> Decisions:
    """Two racks in one hall and one in another, two nodes in each rack."""
    nodes = [builders.node(name, cpu=cpu) for rack in RACKS.values() for name in rack]
    racks = [HyperNode(name, 1, frozenset(members), "rack") for name, members in RACKS.items()]
    halls = [HyperNode(h, 2, frozenset(n for r in racks for n in RACKS[r]), "hall") for h, racks in HALLS.items()]
    state: ClusterState = replace(builders.state(nodes, list(jobs)), hyper_nodes=(*racks, *halls))
    return cycle(state, POLICY, 0.0)


def nodes_of(decisions: Decisions, job: str = "j") -> list[str]:
    return sorted(bind.node for bind in decisions.binds if bind.job == job)


@pytest.mark.parametrize(
    ("pods", "topology", "nodes"),
    [
        (2, CLOSE, ["a0", "a1"]),
        (3, CLOSE, []),
        (3, HALL, ["a0", "a1", "b0"]),
        (5, HALL, []),
        (5, SOFT, ["a0", "a1", "b0", "b1", "c0"]),
        (5, NetworkTopology(highest_tier_name="hall"), []),
        (4, NetworkTopology(highest_tier_name="hall"), ["a0", "a1", "b0", "b1"]),
        (5, NetworkTopology(highest_tier_name="no such tier"), []),
    ],
)
def test_gang_is_placed_in_one_hypernode_of_an_allowed_tier(
    pods: int, topology: NetworkTopology, nodes: list[str]
) -> None:
    assert nodes_of(decide(builders.job("j", pods, cpu="2", topology=topology))) == nodes


def test_hypernodes_may_overlap() -> None:
    """As HyperNode objects may: a node in two hypernodes of one tier."""
    nodes = [builders.node(name, cpu="2") for name in "abcd"]
    racks = (HyperNode("left", 1, frozenset("abc")), HyperNode("right", 1, frozenset("cd")))
    jobs = [builders.job(name, pods, cpu="2", topology=CLOSE) for name, pods in (("j", 3), ("k", 2))]
    decisions = cycle(replace(builders.state(nodes, jobs), hyper_nodes=racks), POLICY, 0.0)
    assert nodes_of(decisions) == ["a", "b", "c"]
    assert nodes_of(decisions, "k") == []


def test_fullest_sufficient_hypernode_is_selected() -> None:
    held = builders.running("other", 2, on="b0")
    assert nodes_of(decide(held, builders.job("j", 2, cpu="2", topology=CLOSE), cpu="4"))[0].startswith("b")


def test_later_pods_stay_in_the_hypernode() -> None:
    runs = builders.running("j", 1, on="c0", minimum=1, topology=CLOSE)
    more = builders.job("j", 3, cpu="2").pods[1:]
    decisions = decide(replace(runs, pods=(runs.pods[0], *more)))
    assert nodes_of(decisions) == ["c1"]


def test_gang_without_a_hypernode_has_a_reason_and_holds_nothing() -> None:
    decisions = decide(builders.job("j", 3, cpu="2", topology=CLOSE), builders.job("k", 6, cpu="2"))
    assert nodes_of(decisions, "k") == ["a0", "a1", "b0", "b1", "c0", "c1"]
    assert [reason.code for reason in decisions.reasons["j"]] == ["no_domain_fits"]


def job_with_sub_groups(sizes: dict[str, int], minimum: int, **policy: object) -> PodGroupSpec:
    tasks: tuple[PodSpec, ...] = tuple(
        replace(task, uid=f"{label}/{i}", name=f"j-{label}-{i}", labels={"part": label})
        for label, size in sizes.items()
        for i, task in enumerate(builders.job("j", size, cpu="2").pods)
    )
    job = builders.job("j", minimum, cpu="2", sub_groups=(SubGroupPolicy("p", keys=("part",), **policy),))
    return replace(job, pods=tasks, min_task_member={})


def racks_by_part(decisions: Decisions) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for bind in decisions.binds:
        found.setdefault(bind.pod.split("/")[0], set()).add(bind.node[0])
    return found


def test_each_sub_group_has_its_own_hypernode() -> None:
    decisions = decide(job_with_sub_groups({"x": 2, "y": 2, "z": 2}, 6, size=2, at_least=3, topology=CLOSE))
    assert sorted(map(sorted, racks_by_part(decisions).values())) == [["a"], ["b"], ["c"]]


def test_sub_group_that_fits_nowhere_does_not_block_the_others() -> None:
    decisions = decide(job_with_sub_groups({"x": 3, "y": 2}, 2, size=2, at_least=1, topology=CLOSE))
    assert [(bind.pod, bind.node) for bind in decisions.binds if bind.pod == "x/2"] == []
    assert {part: len(racks) for part, racks in racks_by_part(decisions).items()} == {"x": 1, "y": 1}


def test_too_few_sub_groups_start_no_pods() -> None:
    assert not decide(job_with_sub_groups({"x": 3, "y": 3}, 6, size=3, at_least=2, topology=CLOSE)).binds
