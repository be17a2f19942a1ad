"""The scheduler cache between cycles equals one built from scratch, and so do the decisions."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.builders import POLICY, job, node, running, state
from tests.engine.clusters import amounts
from tests.engine.histories import History
from tests.engine.test_histories import POLICIES, SEEDS
from tests.support.examples import EVERY, examples

from hekla.domain.resources import Resources
from hekla.domain.taints import Taint
from hekla.engine import cycle
from hekla.engine.audit import differences
from hekla.engine.constraints import PodAffinityTerm, PodConstraints, PodSelector, Requirement
from hekla.engine.decisions import Decisions
from hekla.engine.model import ClusterState, HyperNode, NodeSpec, PodGroupSpec, PodSpec, PodStatus, QueueSpec
from hekla.engine.scheduler_cache import SchedulerCache

Change = Callable[[ClusterState, Random], ClusterState]


def with_shared_objects(before: ClusterState, after: ClusterState) -> ClusterState:
    """The state `after`, with equal nodes and jobs replaced by the identical objects of `before`."""
    nodes = {one.name: one for one in before.nodes}
    jobs = {one.uid: one for one in before.jobs}
    return replace(
        after,
        nodes=tuple(nodes[one.name] if nodes.get(one.name) == one else one for one in after.nodes),
        jobs=tuple(jobs[one.uid] if jobs.get(one.uid) == one else one for one in after.jobs),
    )


class ComparedCycles:
    """Runs each cycle with and without the cache, and asserts equal decisions."""

    def __init__(self) -> None:
        self.cache = SchedulerCache()

    def decide(self, cluster: ClusterState, policy: object) -> Decisions:
        cached = cycle(cluster, policy, 0.0, cache=self.cache, is_detailed=True)
        assert cached == cycle(cluster, policy, 0.0, is_detailed=True)
        assert differences(self.cache) == []
        return cached


# Changes other than the engine's decisions.


def _with_node(cluster: ClusterState, dice: Random, change: Callable[[NodeSpec], NodeSpec]) -> ClusterState:
    at = dice.randrange(len(cluster.nodes))
    return replace(cluster, nodes=(*cluster.nodes[:at], change(cluster.nodes[at]), *cluster.nodes[at + 1 :]))


def _with_job(cluster: ClusterState, dice: Random, change: Callable[[PodGroupSpec], PodGroupSpec]) -> ClusterState:
    if not cluster.jobs:
        return cluster
    at = dice.randrange(len(cluster.jobs))
    return replace(cluster, jobs=(*cluster.jobs[:at], change(cluster.jobs[at]), *cluster.jobs[at + 1 :]))


def _with_task(one: PodGroupSpec, **more: object) -> PodGroupSpec:
    return replace(one, pods=(*one.pods[:-1], replace(one.pods[-1], **more)))


def cordon_node(cluster: ClusterState, dice: Random) -> ClusterState:
    return _with_node(cluster, dice, lambda one: replace(one, unschedulable=not one.unschedulable))


def label_node(cluster: ClusterState, dice: Random) -> ClusterState:
    return _with_node(
        cluster, dice, lambda one: replace(one, labels={"zone": dice.choice("xyz")}, taints=(Taint("a"),))
    )


def grow_node(cluster: ClusterState, dice: Random) -> ClusterState:
    return _with_node(cluster, dice, lambda one: replace(one, allocatable=one.allocatable + amounts(1, 2)))


def reorder_nodes(cluster: ClusterState, dice: Random) -> ClusterState:
    return replace(cluster, nodes=tuple(dice.sample(cluster.nodes, len(cluster.nodes))))


def reorder_jobs(cluster: ClusterState, dice: Random) -> ClusterState:
    return replace(cluster, jobs=tuple(dice.sample(cluster.jobs, len(cluster.jobs))))


def change_queue(cluster: ClusterState, dice: Random) -> ClusterState:
    first, *rest = cluster.queues
    return replace(cluster, queues=(replace(first, weight=dice.randint(0, 5), is_open=dice.random() < 0.8), *rest))


def invalidate_queue(cluster: ClusterState, _dice: Random) -> ClusterState:
    first, *rest = cluster.queues
    return replace(cluster, queues=(replace(first, weight=-first.weight), *rest))


def add_or_remove_queue(cluster: ClusterState, _dice: Random) -> ClusterState:
    others = tuple(queue for queue in cluster.queues if queue.name != "extra")
    return replace(
        cluster, queues=others if len(others) < len(cluster.queues) else (*others, QueueSpec("extra", weight=2))
    )


def add_resource(cluster: ClusterState, dice: Random) -> ClusterState:
    gpu = Resources({f"example.com/gpu-{dice.randint(0, 2)}": 1000.0})
    return _with_job(cluster, dice, lambda one: _with_task(one, request=one.pods[-1].request + gpu))


def invalidate_job(cluster: ClusterState, dice: Random) -> ClusterState:
    return _with_job(cluster, dice, lambda one: replace(one, min_available=-one.min_available))


def duplicate_task(cluster: ClusterState, dice: Random) -> ClusterState:
    uid = cluster.jobs[0].pods[0].uid if cluster.jobs else ""
    return _with_job(cluster, dice, lambda one: _with_task(one, uid=uid))


def duplicate_job(cluster: ClusterState, dice: Random) -> ClusterState:
    return replace(cluster, jobs=(*cluster.jobs, *dice.sample(cluster.jobs, min(1, len(cluster.jobs)))))


def add_anti_affinity(cluster: ClusterState, dice: Random) -> ClusterState:
    one_of = PodSelector((Requirement("app", "In", (dice.choice("ab"),)),), frozenset({""}))
    apart = PodConstraints(pod_anti_affinity=(PodAffinityTerm(one_of, "zone"),))
    return _with_job(cluster, dice, lambda one: _with_task(one, labels={"app": dice.choice("ab")}, constraints=apart))


def change_hypernodes(cluster: ClusterState, dice: Random) -> ClusterState:
    names = frozenset(one.name for one in dice.sample(cluster.nodes, dice.randint(1, len(cluster.nodes))))
    return replace(cluster, hyper_nodes=(HyperNode("rack", 1, names),))


CHANGES: tuple[Change, ...] = (
    cordon_node,
    label_node,
    grow_node,
    reorder_nodes,
    reorder_jobs,
    change_queue,
    invalidate_queue,
    add_or_remove_queue,
    add_resource,
    invalidate_job,
    duplicate_task,
    duplicate_job,
    add_anti_affinity,
    change_hypernodes,
)


class ComparedHistory(History):
    """A history whose cycles run with and without the cache."""

    def __init__(self, seed: int, policy: object) -> None:
        super().__init__(seed, policy)
        self.cycles, self.previous = ComparedCycles(), self.state

    def decide(self, cluster: ClusterState) -> Decisions:
        self.state = self.previous = with_shared_objects(self.previous, cluster)
        return self.cycles.decide(self.state, self.policy)


@pytest.mark.parametrize("name", POLICIES)
@given(seed=SEEDS)
@settings(max_examples=examples(6, least=1), deadline=None, derandomize=True)
def test_cached_cycles_decide_the_same_in_random_histories(name: str, seed: int) -> None:
    for _cluster, _decisions in ComparedHistory(seed, POLICIES[name]).run_with_changes(40):
        pass


def test_cache_is_rebuilt_after_many_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hekla.engine.scheduler_cache._CHANGES_AT_LEAST", 5)
    for _cluster, _decisions in ComparedHistory(1, POLICIES["default"]).run_with_changes(40):
        pass


@pytest.mark.parametrize("change", CHANGES[::EVERY], ids=lambda change: change.__name__)
@given(seed=SEEDS)
@settings(max_examples=examples(6, least=1), deadline=None, derandomize=True)
def test_one_kind_of_change_repeated(change: Change, seed: int) -> None:
    """Each change is applied and undone, cycle after cycle."""
    history, dice = ComparedHistory(seed, POLICIES["default"]), Random(seed)
    for cluster, _ in history.run_with_changes(15):
        for changed in (change(cluster, dice), cluster):
            history.cycles.decide(with_shared_objects(cluster, changed), history.policy)


@given(seed=SEEDS, order=st.lists(st.sampled_from(CHANGES), max_size=25))
@settings(max_examples=examples(20), deadline=None, derandomize=True)
def test_changes_of_all_kinds_combined(seed: int, order: list[Change]) -> None:
    """Each change applies on top of the earlier ones; invalid objects stay invalid."""
    history, dice = ComparedHistory(seed, POLICIES["default"]), Random(seed)
    for _ in history.run_with_changes(8):
        pass
    cluster = history.state
    for change in order:
        cluster = with_shared_objects(cluster, change(cluster, dice))
        history.cycles.decide(cluster, history.policy)


def test_decisions_count_only_when_the_state_contains_them() -> None:
    cache, cluster = SchedulerCache(), state([node("a", "2")], [job("waits", 2), running("runs", 0, "a")])
    first = cycle(cluster, POLICY, 0.0, cache=cache)
    assert first.binds
    assert cycle(cluster, POLICY, 0.0, cache=cache) == first


def test_removed_job_frees_its_resources() -> None:
    cache, big = SchedulerCache(), job("big", 2)
    full = state([node("a", "2")], [running("old", 2, "a"), big])
    assert not cycle(full, POLICY, 0.0, cache=cache).binds
    assert len(cycle(replace(full, jobs=(big,)), POLICY, 0.0, cache=cache).binds) == 2


def test_failed_update_leaves_no_partial_change() -> None:
    """A malformed state raises; the next cycle decides as if it had never been handed in."""
    cache, cluster = SchedulerCache(), state([node("a")], [job("one")])
    cycle(cluster, POLICY, 0.0, cache=cache)
    broken = replace(cluster, jobs=(*cluster.jobs, replace(job("two"), pods=(PodSpec("x", "x", "w", None),))))
    with pytest.raises(Exception, match="NoneType"):
        cycle(broken, POLICY, 0.0, cache=cache)
    assert cycle(cluster, POLICY, 0.0, cache=cache) == cycle(cluster, POLICY, 0.0)
    assert differences(cache) == []


@pytest.mark.parametrize(
    ("corrupt", "word"),
    [
        (lambda cache: cache.table.used.__setitem__((0, 0), 7.0), "the column used of the nodes"),
        (lambda cache: cache.node_pods[0].clear(), "the pods on node a"),
        (
            lambda cache: cache.jobs["runs"].count_by_status.__setitem__(PodStatus.RUNNING, 5),
            "job runs: the number of pods",
        ),
        (lambda cache: cache.queue_totals.add(cache.jobs["runs"]), "the sums of queue q"),
        (lambda cache: cache.unsettled_jobs.uids.pop("waits"), "the set of jobs"),
    ],
)
def test_audit_finds_a_corrupted_cache(corrupt: Callable[[SchedulerCache], object], word: str) -> None:
    cache = SchedulerCache.of(state([node("a")], [running("runs", 2, "a"), job("waits", 9)]))
    assert differences(cache) == []
    corrupt(cache)
    assert any(word in found for found in differences(cache)), differences(cache)
