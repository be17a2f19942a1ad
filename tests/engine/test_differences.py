"""Where the default differs from Volcano: the same world under both, side by side (decision 0010)."""

from dataclasses import replace
from typing import Any

import pytest
from tests.engine.worlds import bound, job, node, running, state

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine import cycle
from hekla.engine.constraints import PodAffinityTerm, PodConstraints, PodSelector, Requirement
from hekla.engine.decisions import Decisions
from hekla.engine.model import (
    ClusterState,
    HyperNode,
    NetworkTopology,
    NodeSpec,
    PodGroupSpec,
    PodStatus,
    QueueSpec,
    SubGroupPolicy,
)
from hekla.engine.policy import parse

HOUR = 3600.0
WEB = PodSelector((Requirement("app", "In", ("web",)),), frozenset({"team"}))


def both(
    world: ClusterState, actions: str, *tiers: str, now: float = 0.0, configurations: str = "[]"
) -> tuple[Decisions, Decisions]:
    """What Hekla decides, and what Volcano does."""
    listed = ", ".join(f"{{plugins: [{tier}]}}" for tier in tiers)
    text = f"actions: '{actions}'\ntiers: [{listed}]\nconfigurations: {configurations}\ncompatibility: "
    hekla, volcano = (cycle(world, parse(text + whose), now) for whose in ("hekla", "volcano"))
    assert not hekla.faults
    assert not volcano.faults
    return hekla, volcano


def evicted(pair: tuple[Decisions, Decisions]) -> tuple[list[str], list[str]]:
    hekla, volcano = (sorted(eviction.pod for eviction in one.evictions) for one in pair)
    return hekla, volcano


def plugins(*names: str) -> str:
    return ", ".join(f"{{name: {name}}}" for name in names)


# Whom one plugin spares, no tier gives up.


def test_a_job_of_low_priority_does_not_evict_one_of_higher() -> None:
    high = running("high", 4, "a", minimum=1, priority=9)
    world = state([node("a", "4")], [high, job("low", 1, priority=1)])
    mine, volcanos = evicted(both(world, "preempt", plugins("drf", "predicates"), plugins("priority", "gang")))
    assert (mine, len(volcanos)) == ([], 1)


def test_a_gang_does_not_fall_below_its_minimum() -> None:
    world = state([node("a", "4")], [running("low", 4, "a", minimum=4), job("high", 1, priority=9)])
    mine, volcanos = evicted(both(world, "preempt", plugins("priority", "predicates"), plugins("gang")))
    assert (mine, len(volcanos)) == ([], 1)


def test_of_a_job_the_last_tasks_go_first() -> None:
    world = state([node("a", "10")], [running("low", 10, "a", minimum=5), job("high", 2, priority=9)])
    mine, volcanos = both(world, "preempt", plugins("priority", "gang", "predicates"), plugins("drf"))
    gone = [{eviction.pod for eviction in decisions.evictions} for decisions in (mine, volcanos)]
    assert gone == [{"low/8", "low/9"}, {"low/3", "low/4"}]


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_a_pod_that_the_system_needs_is_not_evicted(action: str) -> None:
    system = running("dns", 4, "a", minimum=0, namespace="kube-system")
    world = state([node("a", "4")], [system, job("high", 1, priority=9)])
    mine, volcanos = evicted(both(world, action, plugins("gang", "priority", "predicates"), plugins("conformance")))
    assert mine == []
    assert volcanos


def test_what_is_moved_leaves_its_gang_whole() -> None:
    plugin = (
        "{name: rescheduling, arguments: {interval: 5m, strategies: [{name: lowNodeUtilization,"
        " params: {thresholds: {cpu: 30}, targetThresholds: {cpu: 50}}}]}}"
    )
    world = state([node("a", "8"), node("b", "8")], [running("gang", 8, "a", minimum=6)])
    mine, volcanos = evicted(both(world, "shuffle", f"{plugins('gang', 'predicates')}, {plugin}"))
    assert (len(mine), len(volcanos)) == (2, 4)


# Room that was made, and is gone.


@pytest.mark.parametrize("nominated", ["a", "gone"])
def test_a_task_whose_room_was_taken_may_preempt_again(nominated: str) -> None:
    waits = job("high", 1, priority=9, task={"nominated_node": nominated})
    world = state([node("a", "4")], [running("low", 4, "a", minimum=0), waits])
    mine, volcanos = evicted(both(world, "allocate, preempt", plugins("priority", "gang", "predicates")))
    assert (len(mine), volcanos) == (1, [])


def in_vain() -> ClusterState:
    """A gang that must be on one node and finds room for one of its two pods there; then a pod that may go anywhere."""
    run = [running("on-b", 1, "b", cpu="3", minimum=0), running("on-a", 1, "a", cpu="4", minimum=0)]
    gang = job("gang", 2, "4", priority=9, task={"node_selector": {"disk": "fast"}})
    jobs = [*run, gang, job("next", 1, "2", priority=5)]
    return state([node("b", "4"), node("a", "4", labels={"disk": "fast"})], jobs)


def test_who_was_to_go_and_stays_counts_as_before() -> None:
    tier = plugins("priority", "gang", "predicates") + ", {name: nodeorder, arguments: {balancedresource.weight: 0}}"
    assert evicted(both(in_vain(), "preempt", tier)) == (["on-b/0"], ["on-a/0"])


def test_a_node_where_evictions_were_tried_in_vain_is_forgotten() -> None:
    hekla, volcano = both(in_vain(), "preempt", plugins("priority", "gang", "predicates"))
    assert set(volcano.nominated) - set(hekla.nominated) == {"gang/0"}


def test_conditions_that_an_eviction_meets_are_seen() -> None:
    """The urgent pod must be apart from the one that runs: to evict that one is what helps."""
    apart = PodConstraints(pod_anti_affinity=(PodAffinityTerm(WEB, "name"),))
    low = running("low", 1, "a", minimum=0, namespace="team")
    low = replace(low, pods=tuple(replace(task, labels={"app": "web"}) for task in low.pods))
    world = state(
        [node("a", labels={"name": "a"})], [low, job("high", priority=9, namespace="team", task={"constraints": apart})]
    )
    text = plugins("priority", "gang") + ", {name: predicates, enablePreemptable: false}"
    least = "[{name: preempt, arguments: {enableTopologyAwarePreemption: true}}]"
    mine, volcanos = evicted(both(world, "preempt", text, configurations=least))
    assert (mine, volcanos) == (["low/0"], [])


# Whole gangs.

RACK = (HyperNode("r0", 1, frozenset(("a", "b"))),)
CLOSE = NetworkTopology(highest_tier=1)


def test_reclaim_leaves_gangs_that_must_be_close_to_gangreclaim() -> None:
    near = job("near", 1, queue="mine", topology=CLOSE)
    world = state([node("a", "4"), node("b", "4")], [running("a", 4, "a", minimum=0), running("b", 4, "b", minimum=0),
                                                     near], [QueueSpec("q"), QueueSpec("mine")])  # fmt: skip
    pair = both(replace(world, hyper_nodes=RACK), "reclaim", plugins("gang", "predicates", "proportion"))
    mine, volcanos = evicted(pair)
    assert (mine, len(volcanos)) == ([], 1)


def test_gangreclaim_leaves_a_queue_what_it_deserves() -> None:
    jobs = [running("fair", 4, "a", minimum=0), running("more", 8, "b", minimum=0, queue="r")]
    own = job("own", 3, queue="mine", task={"node_selector": {"disk": "fast"}})
    nodes = [node("a", "4", labels={"disk": "fast"}), node("b", "8")]
    world = state(nodes, [*jobs, own], [QueueSpec("q"), QueueSpec("r"), QueueSpec("mine")])
    mine, volcanos = evicted(both(world, "gangreclaim", plugins("gang", "predicates", "proportion")))
    assert mine == []
    assert "fair/0" in volcanos


def test_for_a_gang_nobody_goes_whose_room_it_does_not_use() -> None:
    jobs = [
        running("least", 1, "a", cpu="2", priority=1),
        running("stays", 1, "a", cpu="2", priority=99),
        running("less", 2, "b", cpu="2", priority=2),
        job("high", 1, cpu="4", priority=9),
    ]
    world = state([node("a", "4"), node("b", "4")], jobs)
    mine, volcanos = evicted(both(world, "gangpreempt", plugins("gang", "priority", "predicates")))
    assert mine == ["less/0", "less/1"]
    assert volcanos == ["least/0", "less/0", "less/1"]


def test_what_refused_one_task_of_a_role_may_take_the_next() -> None:
    gang = job("gang", 2)
    tasks = tuple(replace(t, node_selector={"disk": name}) for t, name in zip(gang.pods, "xy", strict=True))
    nodes = [node(name, labels={"disk": name}) for name in "xy"]
    hekla, volcano = both(state(nodes, [replace(gang, pods=tasks)]), "allocate", plugins("gang", "predicates"))
    assert (bound(hekla), bound(volcano)) == ({"gang": 2}, {})


PARTS = (SubGroupPolicy("p", keys=("part",), at_least=1, topology=CLOSE),)


@pytest.mark.parametrize("terms", [{"topology": CLOSE}, {"sub_groups": PARTS}])
def test_a_domain_with_room_now_goes_before_one_that_has_it_later(terms: dict[str, Any]) -> None:
    """What leaves the first rack, half of each machine, still makes it the fuller one: the better one by score."""
    leaving = {"status": PodStatus.RELEASING}
    jobs = [job(f"on-{on}", cpu="2", phase=GangPhase.RUNNING, task={"node": on, **leaving}) for on in "ab"]
    gang = job("gang", cpu="4", task={"labels": {"part": "x"}}, **terms)
    racks = HyperNode("r0", 1, frozenset("ab")), HyperNode("r1", 1, frozenset("cd"))
    world = replace(state([node(name, "4") for name in "abcd"], [*jobs, gang]), hyper_nodes=racks)
    hekla, volcano = both(world, "allocate", plugins("gang", "predicates", "network-topology-aware"))
    assert ([bind.node for bind in hekla.binds], hekla.pipelined) == (["c"], {})
    assert (volcano.binds, volcano.pipelined) == ((), {"gang/0": "a"})


# Machines that are lent for some hours.

LENT = "{name: tdm, arguments: {tdm.revocable-zone.night: '22:00-06:00'}}"
ZONE = {"volcano.sh/revocable-zone": "night"}


def lent(*jobs: PodGroupSpec, nodes: int = 1) -> ClusterState:
    return state([node(f"n{at}", labels=ZONE) for at in range(nodes)], list(jobs))


def revocable(name: str, pods: int, **annotations: str) -> PodGroupSpec:
    made = running(name, pods, "n0", minimum=0, annotations=annotations)
    mark = {"volcano.sh/preemptable": "true"}
    return replace(made, pods=tuple(replace(task, annotations=mark, preemptable=True) for task in made.pods))


@pytest.mark.parametrize(("hour", "mine", "volcanos"), [(23, 1, 1), (3, 1, 0), (7, 0, 0)])
def test_a_window_over_midnight_is_open_until_its_end(hour: int, mine: int, volcanos: int) -> None:
    waits = job("night", 1, task={"annotations": {"volcano.sh/revocable-zone": "*"}})
    hekla, volcano = both(lent(waits), "allocate", plugins("gang", "predicates") + ", " + LENT, now=hour * HOUR)
    assert (len(hekla.binds), len(volcano.binds)) == (mine, volcanos)


def test_who_runs_at_three_at_night_is_not_moved() -> None:
    mine, volcanos = evicted(both(lent(revocable("night", 1)), "shuffle", LENT, now=3 * HOUR))
    assert (mine, volcanos) == ([], ["night/0"])


def test_a_job_that_has_less_than_it_needs_loses_nobody() -> None:
    short = revocable("short", 2, **{"volcano.sh/jdb-min-available": "3"})
    mine, volcanos = evicted(both(lent(short), "shuffle", LENT, now=7 * HOUR))
    assert (mine, len(volcanos)) == ([], 1)


def test_a_budget_is_one_for_all_zones() -> None:
    zones = ("east", "west")
    made = revocable("wide", 2, **{"volcano.sh/jdb-max-unavailable": "1"})
    tasks = tuple(replace(task, node=zone) for task, zone in zip(made.pods, zones, strict=True))
    nodes = [node(zone, labels={"volcano.sh/revocable-zone": zone}) for zone in zones]
    shut = ", ".join(f"tdm.revocable-zone.{zone}: '22:00-23:00'" for zone in zones)
    world = state(nodes, [replace(made, pods=tasks)])
    mine, volcanos = evicted(both(world, "shuffle", f"{{name: tdm, arguments: {{{shut}}}}}", now=7 * HOUR))
    assert (len(mine), len(volcanos)) == (1, 2)


# What is counted.

SHARES = "{name: deviceshare, arguments: {deviceshare.GPUSharingEnable: true}}"


def test_a_card_is_not_given_twice_when_its_pod_does_not_say_which_it_has() -> None:
    gpu = Resources.parse({"volcano.sh/gpu-memory": "8"})
    card = Resources.parse({"cpu": "4", "pods": "110", "volcano.sh/gpu-memory": "8", "volcano.sh/gpu-number": "1"})
    old = running("old", 1, "a")
    jobs = [replace(one, pods=tuple(replace(t, limits=gpu) for t in one.pods)) for one in (old, job("new", 1))]
    hekla, volcano = both(state([NodeSpec("a", card)], jobs), "allocate", plugins("gang", "predicates") + ", " + SHARES)
    assert (bound(hekla), bound(volcano)) == ({}, {"new": 1})


def test_a_pod_goes_near_one_that_likes_it_and_was_just_placed() -> None:
    wish = PodConstraints(preferred_pod_affinity=((5, PodAffinityTerm(WEB, "zone")),))
    likes = {"node_selector": {"disk": "fast"}, "constraints": wish}
    friend = job("friend", cpu="4", created_at=1.0, namespace="team", task=likes)
    new = job("new", created_at=2.0, namespace="team", task={"labels": {"app": "web"}})
    labels = {"a": {"zone": "1", "disk": "fast"}, "b": {"zone": "1"}, "0": {"zone": "2"}}
    world = state([node(name, labels=mine) for name, mine in labels.items()], [friend, new])
    pair = both(world, "allocate", plugins("gang", "predicates", "nodeorder"))
    assert [{bind.job: bind.node for bind in one.binds}["new"] for one in pair] == ["b", "0"]


# Nothing to place.


def test_a_job_without_waiting_tasks_changes_nothing_for_others() -> None:
    jobs = [running("runs", 2, "a"), job("waits", 2), job("new", 2, phase=GangPhase.PENDING)]
    tier = plugins("gang", "drf", "predicates", "proportion")
    hekla, volcano = both(state([node("a", "4"), node("b", "4")], jobs), "enqueue, allocate", tier)
    assert bound(hekla) == bound(volcano)
