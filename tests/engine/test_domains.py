"""Gangs that must lie close together in the network are placed domain by domain."""

from dataclasses import replace

import pytest
from tests.engine import worlds

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
    nodes = [worlds.node(name, cpu=cpu) for rack in RACKS.values() for name in rack]
    racks = [HyperNode(name, 1, frozenset(members), "rack") for name, members in RACKS.items()]
    halls = [HyperNode(h, 2, frozenset(n for r in racks for n in RACKS[r]), "hall") for h, racks in HALLS.items()]
    state: ClusterState = replace(worlds.state(nodes, list(jobs)), hyper_nodes=(*racks, *halls))
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
        (5, NetworkTopology(highest_tier_name="no such tier"), ["a0", "a1", "b0", "b1", "c0"]),
    ],
)
def test_a_gang_lies_within_one_domain_of_an_allowed_tier(
    pods: int, topology: NetworkTopology, nodes: list[str]
) -> None:
    assert nodes_of(decide(worlds.job("j", pods, cpu="2", topology=topology))) == nodes


def test_the_fullest_domain_that_holds_it_is_taken() -> None:
    held = worlds.running("other", 2, on="b0")
    assert nodes_of(decide(held, worlds.job("j", 2, cpu="2", topology=CLOSE), cpu="4"))[0].startswith("b")


def test_pods_that_come_later_stay_in_the_domain() -> None:
    runs = worlds.running("j", 1, on="c0", minimum=1, topology=CLOSE)
    more = worlds.job("j", 3, cpu="2").pods[1:]
    decisions = decide(replace(runs, pods=(runs.pods[0], *more)))
    assert nodes_of(decisions) == ["c1"]


def test_what_finds_no_domain_leaves_no_trace_and_has_a_reason() -> None:
    decisions = decide(worlds.job("j", 3, cpu="2", topology=CLOSE), worlds.job("k", 6, cpu="2"))
    assert nodes_of(decisions, "k") == ["a0", "a1", "b0", "b1", "c0", "c1"]
    assert [reason.code for reason in decisions.reasons["j"]] == ["no_domain_fits"]


def grouped(sizes: dict[str, int], minimum: int, **policy: object) -> PodGroupSpec:
    tasks: tuple[PodSpec, ...] = tuple(
        replace(task, uid=f"{label}/{i}", name=f"j-{label}-{i}", labels={"part": label})
        for label, size in sizes.items()
        for i, task in enumerate(worlds.job("j", size, cpu="2").pods)
    )
    job = worlds.job("j", minimum, cpu="2", sub_groups=(SubGroupPolicy("p", keys=("part",), **policy),))
    return replace(job, pods=tasks, min_task_member={})


def racks_by_part(decisions: Decisions) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for bind in decisions.binds:
        found.setdefault(bind.pod.split("/")[0], set()).add(bind.node[0])
    return found


def test_each_sub_group_has_a_domain_of_its_own() -> None:
    decisions = decide(grouped({"x": 2, "y": 2, "z": 2}, 6, size=2, at_least=3, topology=CLOSE))
    assert sorted(map(sorted, racks_by_part(decisions).values())) == [["a"], ["b"], ["c"]]


def test_a_sub_group_that_fits_nowhere_does_not_hold_up_the_others() -> None:
    decisions = decide(grouped({"x": 3, "y": 2}, 2, size=2, at_least=1, topology=CLOSE))
    assert [(bind.pod, bind.node) for bind in decisions.binds if bind.pod == "x/2"] == []
    assert {part: len(racks) for part, racks in racks_by_part(decisions).items()} == {"x": 1, "y": 1}


def test_too_few_sub_groups_start_nothing() -> None:
    assert not decide(grouped({"x": 3, "y": 3}, 6, size=3, at_least=2, topology=CLOSE)).binds
