"""Where Hekla's default differs from Volcano: the same cluster under both (decision 0010)."""

from dataclasses import replace
from typing import Any

import pytest
from tests.engine.builders import bound, job, node, running, state

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


def decide_both(
    cluster: ClusterState, actions: str, *tiers: str, now: float = 0.0, configurations: str = "[]"
) -> tuple[Decisions, Decisions]:
    """(Hekla's decisions, Volcano's decisions)."""
    listed = ", ".join(f"{{plugins: [{tier}]}}" for tier in tiers)
    text = f"actions: '{actions}'\ntiers: [{listed}]\nconfigurations: {configurations}\ncompatibility: "
    hekla, volcano = (cycle(cluster, parse(text + compatibility), now) for compatibility in ("hekla", "volcano"))
    assert not hekla.faults
    assert not volcano.faults
    return hekla, volcano


def evicted(pair: tuple[Decisions, Decisions]) -> tuple[list[str], list[str]]:
    hekla, volcano = (sorted(eviction.pod for eviction in one.evictions) for one in pair)
    return hekla, volcano


def plugins(*names: str) -> str:
    return ", ".join(f"{{name: {name}}}" for name in names)


# Victims: a pod that one plugin protects is no victim in any tier.


def test_low_priority_job_does_not_evict_a_higher_one() -> None:
    high = running("high", 4, "a", minimum=1, priority=9)
    cluster = state([node("a", "4")], [high, job("low", 1, priority=1)])
    mine, volcanos = evicted(decide_both(cluster, "preempt", plugins("drf", "predicates"), plugins("priority", "gang")))
    assert (mine, len(volcanos)) == ([], 1)


def test_gang_does_not_fall_below_its_minimum() -> None:
    cluster = state([node("a", "4")], [running("low", 4, "a", minimum=4), job("high", 1, priority=9)])
    mine, volcanos = evicted(decide_both(cluster, "preempt", plugins("priority", "predicates"), plugins("gang")))
    assert (mine, len(volcanos)) == ([], 1)


def test_last_replicas_of_a_job_are_evicted_first() -> None:
    cluster = state([node("a", "10")], [running("low", 10, "a", minimum=5), job("high", 2, priority=9)])
    mine, volcanos = decide_both(cluster, "preempt", plugins("priority", "gang", "predicates"), plugins("drf"))
    gone = [{eviction.pod for eviction in decisions.evictions} for decisions in (mine, volcanos)]
    assert gone == [{"low/8", "low/9"}, {"low/3", "low/4"}]


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_critical_pod_is_not_evicted(action: str) -> None:
    system = running("dns", 4, "a", minimum=0, namespace="kube-system")
    cluster = state([node("a", "4")], [system, job("high", 1, priority=9)])
    mine, volcanos = evicted(
        decide_both(cluster, action, plugins("gang", "priority", "predicates"), plugins("conformance"))
    )
    assert mine == []
    assert volcanos


def test_rescheduling_keeps_the_minimum_of_a_gang() -> None:
    plugin = (
        "{name: rescheduling, arguments: {interval: 5m, strategies: [{name: lowNodeUtilization,"
        " params: {thresholds: {cpu: 30}, targetThresholds: {cpu: 50}}}]}}"
    )
    cluster = state([node("a", "8"), node("b", "8")], [running("gang", 8, "a", minimum=6)])
    mine, volcanos = evicted(decide_both(cluster, "shuffle", f"{plugins('gang', 'predicates')}, {plugin}"))
    assert (len(mine), len(volcanos)) == (2, 4)


# Nominations and undone evictions.


@pytest.mark.parametrize("nominated", ["a", "gone"])
def test_pod_that_lost_its_nominated_room_may_preempt_again(nominated: str) -> None:
    waits = job("high", 1, priority=9, task={"nominated_node": nominated})
    cluster = state([node("a", "4")], [running("low", 4, "a", minimum=0), waits])
    mine, volcanos = evicted(decide_both(cluster, "allocate, preempt", plugins("priority", "gang", "predicates")))
    assert (len(mine), volcanos) == (1, [])


def cluster_for_undone_evictions() -> ClusterState:
    """A gang bound to one node that has room for one of its two pods, and then a pod without constraints."""
    run = [running("on-b", 1, "b", cpu="3", minimum=0), running("on-a", 1, "a", cpu="4", minimum=0)]
    gang = job("gang", 2, "4", priority=9, task={"node_selector": {"disk": "fast"}})
    jobs = [*run, gang, job("next", 1, "2", priority=5)]
    return state([node("b", "4"), node("a", "4", labels={"disk": "fast"})], jobs)


def test_undone_eviction_still_counts_for_scores() -> None:
    tier = plugins("priority", "gang", "predicates") + ", {name: nodeorder, arguments: {balancedresource.weight: 0}}"
    assert evicted(decide_both(cluster_for_undone_evictions(), "preempt", tier)) == (["on-b/0"], ["on-a/0"])


def test_nomination_is_removed_after_undone_evictions() -> None:
    hekla, volcano = decide_both(cluster_for_undone_evictions(), "preempt", plugins("priority", "gang", "predicates"))
    assert set(volcano.nominated) - set(hekla.nominated) == {"gang/0"}


def test_constraints_are_checked_again_after_an_eviction() -> None:
    """The urgent pod has an anti-affinity to the running one, so only evicting that one makes room."""
    apart = PodConstraints(pod_anti_affinity=(PodAffinityTerm(WEB, "name"),))
    low = running("low", 1, "a", minimum=0, namespace="team")
    low = replace(low, pods=tuple(replace(task, labels={"app": "web"}) for task in low.pods))
    cluster = state(
        [node("a", labels={"name": "a"})], [low, job("high", priority=9, namespace="team", task={"constraints": apart})]
    )
    text = plugins("priority", "gang") + ", {name: predicates, enablePreemptable: false}"
    least = "[{name: preempt, arguments: {enableTopologyAwarePreemption: true}}]"
    mine, volcanos = evicted(decide_both(cluster, "preempt", text, configurations=least))
    assert (mine, volcanos) == (["low/0"], [])


def test_room_of_one_eviction_serves_several_pods() -> None:
    """Volcano's topology-aware preemption gives a pod no room that it need not evict for, so the gang never starts."""
    cluster = state([node("a", "2")], [running("low", 1, "a", cpu="2", minimum=0), job("high", 2, priority=9)])
    least = "[{name: preempt, arguments: {enableTopologyAwarePreemption: true}}]"
    pair = decide_both(cluster, "preempt", plugins("priority", "predicates", "gang"), configurations=least)
    assert evicted(pair) == (["low/0"], [])
    assert [sorted(one.pipelined) for one in pair] == [["high/0", "high/1"], []]


# Whole gangs.

RACK = (HyperNode("r0", 1, frozenset(("a", "b"))),)
CLOSE = NetworkTopology(highest_tier=1)


def test_reclaim_skips_gangs_with_a_topology_constraint() -> None:
    near = job("near", 1, queue="mine", topology=CLOSE)
    cluster = state([node("a", "4"), node("b", "4")], [running("a", 4, "a", minimum=0), running("b", 4, "b", minimum=0),
                                                     near], [QueueSpec("q"), QueueSpec("mine")])  # fmt: skip
    pair = decide_both(replace(cluster, hyper_nodes=RACK), "reclaim", plugins("gang", "predicates", "proportion"))
    mine, volcanos = evicted(pair)
    assert (mine, len(volcanos)) == ([], 1)


def test_gangreclaim_keeps_the_deserved_share_of_a_queue() -> None:
    jobs = [running("fair", 4, "a", minimum=0), running("more", 8, "b", minimum=0, queue="r")]
    own = job("own", 3, queue="mine", task={"node_selector": {"disk": "fast"}})
    nodes = [node("a", "4", labels={"disk": "fast"}), node("b", "8")]
    cluster = state(nodes, [*jobs, own], [QueueSpec("q"), QueueSpec("r"), QueueSpec("mine")])
    mine, volcanos = evicted(decide_both(cluster, "gangreclaim", plugins("gang", "predicates", "proportion")))
    assert mine == []
    assert "fair/0" in volcanos


def test_gangpreempt_evicts_only_pods_whose_room_is_used() -> None:
    jobs = [
        running("least", 1, "a", cpu="2", priority=1),
        running("stays", 1, "a", cpu="2", priority=99),
        running("less", 2, "b", cpu="2", priority=2),
        job("high", 1, cpu="4", priority=9),
    ]
    cluster = state([node("a", "4"), node("b", "4")], jobs)
    mine, volcanos = evicted(decide_both(cluster, "gangpreempt", plugins("gang", "priority", "predicates")))
    assert mine == ["less/0", "less/1"]
    assert volcanos == ["least/0", "less/0", "less/1"]


def test_node_that_refused_one_pod_of_a_role_is_checked_for_the_next() -> None:
    gang = job("gang", 2)
    tasks = tuple(replace(t, node_selector={"disk": name}) for t, name in zip(gang.pods, "xy", strict=True))
    nodes = [node(name, labels={"disk": name}) for name in "xy"]
    hekla, volcano = decide_both(state(nodes, [replace(gang, pods=tasks)]), "allocate", plugins("gang", "predicates"))
    assert (bound(hekla), bound(volcano)) == ({"gang": 2}, {})


PARTS = (SubGroupPolicy("p", keys=("part",), at_least=1, topology=CLOSE),)


@pytest.mark.parametrize("terms", [{"topology": CLOSE}, {"sub_groups": PARTS}])
def test_domain_with_room_now_is_before_one_with_room_later(terms: dict[str, Any]) -> None:
    """Releasing pods hold half of each node of the first rack, so it is fuller and has the better score."""
    leaving = {"status": PodStatus.RELEASING}
    jobs = [job(f"on-{on}", cpu="2", phase=GangPhase.RUNNING, task={"node": on, **leaving}) for on in "ab"]
    gang = job("gang", cpu="4", task={"labels": {"part": "x"}}, **terms)
    racks = HyperNode("r0", 1, frozenset("ab")), HyperNode("r1", 1, frozenset("cd"))
    cluster = replace(state([node(name, "4") for name in "abcd"], [*jobs, gang]), hyper_nodes=racks)
    hekla, volcano = decide_both(cluster, "allocate", plugins("gang", "predicates", "network-topology-aware"))
    assert ([bind.node for bind in hekla.binds], hekla.pipelined) == (["c"], {})
    assert (volcano.binds, volcano.pipelined) == ((), {"gang/0": "a"})


# Revocable zones.

LENT = "{name: tdm, arguments: {tdm.revocable-zone.night: '22:00-06:00'}}"
ZONE = {"volcano.sh/revocable-zone": "night"}


def lent(*jobs: PodGroupSpec, nodes: int = 1) -> ClusterState:
    return state([node(f"n{at}", labels=ZONE) for at in range(nodes)], list(jobs))


def revocable(name: str, pods: int, **annotations: str) -> PodGroupSpec:
    made = running(name, pods, "n0", minimum=0, annotations=annotations)
    mark = {"volcano.sh/preemptable": "true"}
    return replace(made, pods=tuple(replace(task, annotations=mark, preemptable=True) for task in made.pods))


@pytest.mark.parametrize(("hour", "mine", "volcanos"), [(23, 1, 1), (3, 1, 0), (7, 0, 0)])
def test_window_over_midnight_is_open_until_its_end(hour: int, mine: int, volcanos: int) -> None:
    waits = job("night", 1, task={"annotations": {"volcano.sh/revocable-zone": "*"}})
    hekla, volcano = decide_both(lent(waits), "allocate", plugins("gang", "predicates") + ", " + LENT, now=hour * HOUR)
    assert (len(hekla.binds), len(volcano.binds)) == (mine, volcanos)


def test_pod_in_an_open_window_over_midnight_is_not_evicted() -> None:
    mine, volcanos = evicted(decide_both(lent(revocable("night", 1)), "shuffle", LENT, now=3 * HOUR))
    assert (mine, volcanos) == ([], ["night/0"])


def test_job_below_its_min_available_loses_no_pod() -> None:
    short = revocable("short", 2, **{"volcano.sh/jdb-min-available": "3"})
    mine, volcanos = evicted(decide_both(lent(short), "shuffle", LENT, now=7 * HOUR))
    assert (mine, len(volcanos)) == ([], 1)


def test_disruption_budget_is_shared_by_all_zones() -> None:
    zones = ("east", "west")
    made = revocable("wide", 2, **{"volcano.sh/jdb-max-unavailable": "1"})
    tasks = tuple(replace(task, node=zone) for task, zone in zip(made.pods, zones, strict=True))
    nodes = [node(zone, labels={"volcano.sh/revocable-zone": zone}) for zone in zones]
    shut = ", ".join(f"tdm.revocable-zone.{zone}: '22:00-23:00'" for zone in zones)
    cluster = state(nodes, [replace(made, pods=tasks)])
    mine, volcanos = evicted(decide_both(cluster, "shuffle", f"{{name: tdm, arguments: {{{shut}}}}}", now=7 * HOUR))
    assert (len(mine), len(volcanos)) == (1, 2)


# Queues.


@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
@pytest.mark.parametrize("phase", [GangPhase.PENDING, GangPhase.INQUEUE])
def test_jobs_of_a_closed_queue_continue(plugin: str, phase: GangPhase) -> None:
    waits = job("waits", 2, queue="shut", phase=phase)
    cluster = replace(state([node("a", "4")], [waits]), queues=(QueueSpec("shut", is_open=False),))
    hekla, volcano = decide_both(cluster, "enqueue, allocate", plugins("gang", "predicates", plugin))
    assert (bound(hekla), bound(volcano)) == ({"waits": 2}, {})
    assert [one.code for one in volcano.reasons["waits"]].count("queue_closed") == 1


# Devices and affinities.

SHARES = "{name: deviceshare, arguments: {deviceshare.GPUSharingEnable: true}}"


def test_card_of_a_pod_without_recorded_index_is_not_allocated_twice() -> None:
    gpu = Resources.parse({"volcano.sh/gpu-memory": "8"})
    card = Resources.parse({"cpu": "4", "pods": "110", "volcano.sh/gpu-memory": "8", "volcano.sh/gpu-number": "1"})
    old = running("old", 1, "a")
    jobs = [replace(one, pods=tuple(replace(t, limits=gpu) for t in one.pods)) for one in (old, job("new", 1))]
    hekla, volcano = decide_both(
        state([NodeSpec("a", card)], jobs), "allocate", plugins("gang", "predicates") + ", " + SHARES
    )
    assert (bound(hekla), bound(volcano)) == ({}, {"new": 1})


def test_preferred_affinity_of_a_just_placed_pod_counts() -> None:
    affinity = PodConstraints(preferred_pod_affinity=((5, PodAffinityTerm(WEB, "zone")),))
    likes = {"node_selector": {"disk": "fast"}, "constraints": affinity}
    friend = job("friend", cpu="4", created_at=1.0, namespace="team", task=likes)
    new = job("new", created_at=2.0, namespace="team", task={"labels": {"app": "web"}})
    labels = {"a": {"zone": "1", "disk": "fast"}, "b": {"zone": "1"}, "0": {"zone": "2"}}
    cluster = state([node(name, labels=mine) for name, mine in labels.items()], [friend, new])
    pair = decide_both(cluster, "allocate", plugins("gang", "predicates", "nodeorder"))
    assert [{bind.job: bind.node for bind in one.binds}["new"] for one in pair] == ["b", "0"]


# Jobs without pending pods.


def test_job_without_pending_pods_does_not_affect_others() -> None:
    jobs = [running("runs", 2, "a"), job("waits", 2), job("new", 2, phase=GangPhase.PENDING)]
    tier = plugins("gang", "drf", "predicates", "proportion")
    hekla, volcano = decide_both(state([node("a", "4"), node("b", "4")], jobs), "enqueue, allocate", tier)
    assert bound(hekla) == bound(volcano)
