"""What the engine keeps between cycles is what it would find on looking afresh, and so are its decisions."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.clusters import amounts
from tests.engine.histories import History
from tests.engine.test_histories import POLICIES, SEEDS
from tests.engine.worlds import POLICY, job, node, running, state
from tests.support.examples import examples

from hekla.domain.resources import Resources
from hekla.engine import cycle
from hekla.engine.audit import differences
from hekla.engine.constraints import PodAffinityTerm, PodConstraints, PodSelector, Requirement
from hekla.engine.decisions import Decisions
from hekla.engine.model import ClusterState, HyperNode, NodeSpec, PodGroupSpec, PodSpec, PodStatus, QueueSpec, Taint
from hekla.engine.scheduler_cache import SchedulerCache

Change = Callable[[ClusterState, Random], ClusterState]


def recognised(before: ClusterState, after: ClusterState) -> ClusterState:
    """The same state; what is equal to something before is the very same object, as in the rows of a database."""
    nodes = {one.name: one for one in before.nodes}
    jobs = {one.uid: one for one in before.jobs}
    return replace(
        after,
        nodes=tuple(nodes[one.name] if nodes.get(one.name) == one else one for one in after.nodes),
        jobs=tuple(jobs[one.uid] if jobs.get(one.uid) == one else one for one in after.jobs),
    )


class Both:
    """Decides on each state twice, and holds the answers against each other."""

    def __init__(self) -> None:
        self.world = SchedulerCache()

    def decide(self, asked: ClusterState, policy: object) -> Decisions:
        kept = cycle(asked, policy, 0.0, cache=self.world, is_detailed=True)
        assert kept == cycle(asked, policy, 0.0, is_detailed=True)
        assert differences(self.world) == []
        return kept


# What may change besides what the engine decides.


def _with_node(asked: ClusterState, dice: Random, change: Callable[[NodeSpec], NodeSpec]) -> ClusterState:
    at = dice.randrange(len(asked.nodes))
    return replace(asked, nodes=(*asked.nodes[:at], change(asked.nodes[at]), *asked.nodes[at + 1 :]))


def _with_job(asked: ClusterState, dice: Random, change: Callable[[PodGroupSpec], PodGroupSpec]) -> ClusterState:
    if not asked.jobs:
        return asked
    at = dice.randrange(len(asked.jobs))
    return replace(asked, jobs=(*asked.jobs[:at], change(asked.jobs[at]), *asked.jobs[at + 1 :]))


def _with_task(one: PodGroupSpec, **more: object) -> PodGroupSpec:
    return replace(one, pods=(*one.pods[:-1], replace(one.pods[-1], **more)))


def a_node_is_cordoned(asked: ClusterState, dice: Random) -> ClusterState:
    return _with_node(asked, dice, lambda one: replace(one, unschedulable=not one.unschedulable))


def a_node_is_labelled(asked: ClusterState, dice: Random) -> ClusterState:
    return _with_node(asked, dice, lambda one: replace(one, labels={"zone": dice.choice("xyz")}, taints=(Taint("a"),)))


def a_node_grows(asked: ClusterState, dice: Random) -> ClusterState:
    return _with_node(asked, dice, lambda one: replace(one, allocatable=one.allocatable + amounts(1, 2)))


def nodes_come_in_another_order(asked: ClusterState, dice: Random) -> ClusterState:
    return replace(asked, nodes=tuple(dice.sample(asked.nodes, len(asked.nodes))))


def jobs_come_in_another_order(asked: ClusterState, dice: Random) -> ClusterState:
    return replace(asked, jobs=tuple(dice.sample(asked.jobs, len(asked.jobs))))


def a_queue_changes(asked: ClusterState, dice: Random) -> ClusterState:
    first, *rest = asked.queues
    return replace(asked, queues=(replace(first, weight=dice.randint(0, 5), is_open=dice.random() < 0.8), *rest))


def a_queue_makes_no_sense(asked: ClusterState, _dice: Random) -> ClusterState:
    first, *rest = asked.queues
    return replace(asked, queues=(replace(first, weight=-first.weight), *rest))


def a_queue_comes_or_goes(asked: ClusterState, _dice: Random) -> ClusterState:
    kept = tuple(queue for queue in asked.queues if queue.name != "extra")
    return replace(asked, queues=kept if len(kept) < len(asked.queues) else (*kept, QueueSpec("extra", weight=2)))


def a_resource_is_new(asked: ClusterState, dice: Random) -> ClusterState:
    gpu = Resources({f"example.com/gpu-{dice.randint(0, 2)}": 1000.0})
    return _with_job(asked, dice, lambda one: _with_task(one, request=one.pods[-1].request + gpu))


def a_job_makes_no_sense(asked: ClusterState, dice: Random) -> ClusterState:
    return _with_job(asked, dice, lambda one: replace(one, min_available=-one.min_available))


def a_task_is_there_twice(asked: ClusterState, dice: Random) -> ClusterState:
    uid = asked.jobs[0].pods[0].uid if asked.jobs else ""
    return _with_job(asked, dice, lambda one: _with_task(one, uid=uid))


def a_job_is_there_twice(asked: ClusterState, dice: Random) -> ClusterState:
    return replace(asked, jobs=(*asked.jobs, *dice.sample(asked.jobs, min(1, len(asked.jobs)))))


def pods_stay_apart(asked: ClusterState, dice: Random) -> ClusterState:
    one_of = PodSelector((Requirement("app", "In", (dice.choice("ab"),)),), frozenset({""}))
    apart = PodConstraints(pod_anti_affinity=(PodAffinityTerm(one_of, "zone"),))
    return _with_job(asked, dice, lambda one: _with_task(one, labels={"app": dice.choice("ab")}, constraints=apart))


def the_network_changes(asked: ClusterState, dice: Random) -> ClusterState:
    names = frozenset(one.name for one in dice.sample(asked.nodes, dice.randint(1, len(asked.nodes))))
    return replace(asked, hyper_nodes=(HyperNode("rack", 1, names),))


CHANGES: tuple[Change, ...] = (
    a_node_is_cordoned,
    a_node_is_labelled,
    a_node_grows,
    nodes_come_in_another_order,
    jobs_come_in_another_order,
    a_queue_changes,
    a_queue_makes_no_sense,
    a_queue_comes_or_goes,
    a_resource_is_new,
    a_job_makes_no_sense,
    a_task_is_there_twice,
    a_job_is_there_twice,
    pods_stay_apart,
    the_network_changes,
)


class Watched(History):
    """A history each of whose states is decided on by both."""

    def __init__(self, seed: int, policy: object) -> None:
        super().__init__(seed, policy)
        self.both, self.last = Both(), self.state

    def decide(self, asked: ClusterState) -> Decisions:
        self.state = self.last = recognised(self.last, asked)
        return self.both.decide(self.state, self.policy)


@pytest.mark.parametrize("name", POLICIES)
@given(seed=SEEDS)
@settings(max_examples=examples(6), deadline=None, derandomize=True)
def test_through_the_life_of_a_cluster(name: str, seed: int) -> None:
    for _asked, _decisions in Watched(seed, POLICIES[name]).live(40):
        pass


def test_what_is_kept_is_built_afresh_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hekla.engine.scheduler_cache._CHANGES_AT_LEAST", 5)
    for _asked, _decisions in Watched(1, POLICIES["default"]).live(40):
        pass


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@given(seed=SEEDS)
@settings(max_examples=examples(6), deadline=None, derandomize=True)
def test_whatever_else_changes(change: Change, seed: int) -> None:
    """One kind of change, again and again."""
    history, dice = Watched(seed, POLICIES["default"]), Random(seed)
    for asked, _ in history.live(15):
        for changed in (change(asked, dice), asked):
            history.both.decide(recognised(asked, changed), history.policy)


@given(seed=SEEDS, order=st.lists(st.sampled_from(CHANGES), max_size=25))
@settings(max_examples=examples(20), deadline=None, derandomize=True)
def test_changes_of_all_kinds(seed: int, order: list[Change]) -> None:
    """Each on top of those before; what a change made senseless stays so."""
    history, dice = Watched(seed, POLICIES["default"]), Random(seed)
    for _ in history.live(8):
        pass
    asked = history.state
    for change in order:
        asked = recognised(asked, change(asked, dice))
        history.both.decide(asked, history.policy)


def test_what_was_decided_counts_once_the_state_says_so() -> None:
    world, asked = SchedulerCache(), state([node("a", "2")], [job("waits", 2), running("runs", 0, "a")])
    first = cycle(asked, POLICY, 0.0, cache=world)
    assert first.binds
    assert cycle(asked, POLICY, 0.0, cache=world) == first


def test_a_job_that_is_gone_leaves_its_place() -> None:
    world, big = SchedulerCache(), job("big", 2)
    full = state([node("a", "2")], [running("old", 2, "a"), big])
    assert not cycle(full, POLICY, 0.0, cache=world).binds
    assert len(cycle(replace(full, jobs=(big,)), POLICY, 0.0, cache=world).binds) == 2


def test_a_failure_on_the_way_leaves_nothing_half_changed() -> None:
    """A state that cannot be read is an error of who gives it; the next is decided on as if it had not come."""
    world, asked = SchedulerCache(), state([node("a")], [job("one")])
    cycle(asked, POLICY, 0.0, cache=world)
    broken = replace(asked, jobs=(*asked.jobs, replace(job("two"), pods=(PodSpec("x", "x", "w", None),))))
    with pytest.raises(Exception, match="NoneType"):
        cycle(broken, POLICY, 0.0, cache=world)
    assert cycle(asked, POLICY, 0.0, cache=world) == cycle(asked, POLICY, 0.0)
    assert differences(world) == []


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (lambda world: world.table.used.__setitem__((0, 0), 7.0), "what is used on the nodes"),
        (lambda world: world.node_pods[0].clear(), "who is on node a"),
        (
            lambda world: world.jobs["runs"].count_by_status.__setitem__(PodStatus.RUNNING, 5),
            "job runs: how many tasks",
        ),
        (lambda world: world.queue_totals.add(world.jobs["runs"]), "the sums of queue q"),
        (lambda world: world.unsettled_jobs.clear(), "which jobs there are"),
    ],
)
def test_the_check_finds_what_is_wrong(spoil: Callable[[SchedulerCache], object], word: str) -> None:
    world = SchedulerCache.of(state([node("a")], [running("runs", 2, "a"), job("waits", 9)]))
    assert differences(world) == []
    spoil(world)
    assert any(word in found for found in differences(world)), differences(world)
