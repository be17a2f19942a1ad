"""An eviction names the pod, the job it is for, the action, the plugins, and the share changes."""

from dataclasses import dataclass, replace

import pytest
from tests.engine.builders import job, node, running, state

from hekla.domain.resources import Resources
from hekla.engine import cycle, registry
from hekla.engine.decisions import Decisions, Eviction, ShareHolder, ShareImpact, ShareShift
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.model import ClusterState, QueueSpec
from hekla.engine.policy import PluginOption, parse
from hekla.engine.session import Session

TWO_CORES = Resources.parse({"cpu": "2"})
OWNED = [QueueSpec("q", deserved=TWO_CORES), QueueSpec("mine", deserved=TWO_CORES)]


def decide(cluster: ClusterState, actions: str, *tiers: str, more: str = "") -> Decisions:
    """Run one cycle with tiers of plugin names; `plugin:switch` turns that switch off."""
    listed = [", ".join(map(_plugin, tier.split())) for tier in tiers]
    text = f"actions: '{actions}'\n{more}\ntiers: [{', '.join(f'{{plugins: [{plugins}]}}' for plugins in listed)}]"
    decisions = cycle(cluster, parse(text), 0.0)
    assert not decisions.faults
    return decisions


def _plugin(word: str) -> str:
    name, _, switch = word.partition(":")
    return f"{{name: {name}, {switch}: false}}" if switch else f"{{name: {name}}}"


def in_one_queue() -> ClusterState:
    """An elastic job fills a node of four cores; an urgent one needs two of them."""
    return state([node("a")], [running("low", 4, "a", minimum=1), job("high", 2, priority=9)])


def in_two_queues(queues: list[QueueSpec]) -> ClusterState:
    jobs = [running("low", 4, "a", minimum=1), job("own", 2, queue="mine")]
    return state([node("a")], jobs, queues)


PLAIN = [QueueSpec("q"), QueueSpec("mine")]
LEAST = "configurations: [{name: preempt, arguments: {enableTopologyAwarePreemption: true}}]"


@dataclass(frozen=True)
class Case:
    """A cluster, the tiers of the policy, and the expected fields of each eviction."""

    cluster: ClusterState
    action: str
    tiers: tuple[str, ...]
    for_job: str
    plugins: tuple[str, ...]
    shares: tuple[ShareImpact, ...] = ()
    more: str = ""


JOBS_OF_DRF = ShareImpact("drf", ShareHolder.JOB, ShareShift(1.0, 0.5), ShareShift(0.0, 0.5))
ONE_QUEUE = ShareImpact("proportion", ShareHolder.QUEUE, ShareShift(1.0, 1.0), ShareShift(1.0, 1.0))
TWO_QUEUES = ShareImpact("proportion", ShareHolder.QUEUE, ShareShift(2.0, 1.0), ShareShift(0.0, 1.0))
TWO_OWNERS = replace(TWO_QUEUES, plugin="capacity")
CASES = {
    "preempt": Case(in_one_queue(), "preempt", ("priority gang", "predicates"), "high", ("priority", "gang")),
    "who abstains has no part": Case(in_one_queue(), "preempt", ("priority sla", "gang"), "high", ("priority",)),
    "the first tier that decides": Case(in_one_queue(), "preempt", ("tdm", "gang", "priority"), "high", ("gang",)),
    "shares of jobs": Case(
        in_one_queue(), "preempt", ("priority gang", "drf proportion predicates"), "high", ("priority", "gang"),
        (ONE_QUEUE, JOBS_OF_DRF),
    ),
    "least victims": Case(
        in_one_queue(), "preempt", ("priority gang", "drf predicates"), "high", ("priority", "gang"), (JOBS_OF_DRF,),
        LEAST,
    ),
    "reclaim": Case(
        in_two_queues(PLAIN), "reclaim", ("gang", "proportion predicates drf"), "own", ("gang",), (TWO_QUEUES,)
    ),
    "reclaim by share": Case(
        in_two_queues(PLAIN), "reclaim", ("gang proportion", "predicates"), "own", ("gang", "proportion"), (TWO_QUEUES,)
    ),
    "reclaim what is owned": Case(
        in_two_queues(OWNED), "reclaim", ("gang capacity", "predicates"), "own", ("gang", "capacity"), (TWO_OWNERS,)
    ),
    "gangpreempt": Case(
        in_one_queue(), "gangpreempt", ("priority gang", "conformance drf"), "high",
        ("priority", "gang", "conformance"), (JOBS_OF_DRF,),
    ),
    "gangreclaim": Case(
        in_two_queues(PLAIN), "gangreclaim", ("gang", "proportion"), "own", ("gang", "proportion"), (TWO_QUEUES,)
    ),
    "gangreclaim what is owned": Case(
        in_two_queues(OWNED), "gangreclaim", ("gang", "capacity"), "own", ("gang", "capacity"), (TWO_OWNERS,)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_eviction_names_its_plugins_and_share_changes(name: str) -> None:
    case = CASES[name]
    found = decide(case.cluster, case.action, *case.tiers, more=case.more).evictions
    assert len(found) == 2
    assert {eviction.pod[:4] for eviction in found} == {"low/"}
    for eviction in found:
        task = eviction.pod
        assert eviction == Eviction("low", task, "a", case.action, case.for_job, case.plugins, case.shares)


def test_volcano_names_the_deciding_tier_for_a_whole_gang() -> None:
    (first, second) = decide(
        in_one_queue(), "gangpreempt", "priority", "gang", "conformance", more="compatibility: volcano"
    ).evictions
    assert first.plugins == second.plugins == ("priority",)


EVEN = (
    "actions: shuffle\ntiers: [{plugins: [{name: gang}, {name: proportion}, {name: predicates}, {name: rescheduling,"
    " arguments: {strategies: [{name: lowNodeUtilization, params: {thresholds: {cpu: 30}, targetThresholds:"
    " {cpu: 50}}}]}}]}]"
)


def test_rescheduled_pod_is_evicted_for_no_job() -> None:
    cluster = state([node("a", "8"), node("b", "8")], [running("gang", 8, "a", minimum=6)])
    shares = (ShareImpact("proportion", ShareHolder.QUEUE, ShareShift(1.0, 0.75)),)
    found = cycle(cluster, parse(EVEN), 0.0).evictions
    assert [(e.action, e.for_job, e.plugins, e.shares) for e in found] == [
        ("shuffle", "", ("rescheduling",), shares)
    ] * 2


class Halves:
    """Reports `answer` for every share, even if it is not a finite number."""

    def __init__(self, answer: float) -> None:
        self.answer = answer

    def open_session(self, session: Session, option: PluginOption) -> None:
        session.register(ExtensionPoint.QUEUE_SHARE, option, lambda _queue, _more, _less: self.answer)


def test_custom_plugins_may_report_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {**registry.plugins(), "halves": Halves(0.5), "broken": Halves(float("inf"))}
    monkeypatch.setattr(registry, "plugins", lambda: known)
    found = decide(in_one_queue(), "preempt", "priority gang halves").evictions
    half = ShareShift(0.5, 0.5)
    assert {eviction.shares for eviction in found} == {(ShareImpact("halves", ShareHolder.QUEUE, half, half),)}
    broken = parse("actions: preempt\ntiers: [{plugins: [{name: priority}, {name: gang}, {name: broken}]}]")
    assert [fault.name for fault in cycle(in_one_queue(), broken, 0.0).faults] == ["broken"]
