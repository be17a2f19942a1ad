"""Preemption diagnosis: which victims were considered for a waiting job, and why each was not evicted."""

from dataclasses import dataclass, field, replace

import pytest
from tests.engine.builders import job, node, running, state
from tests.engine.test_eviction_reasons import decide
from tests.engine.test_gang_evictions import CLOSE, filler
from tests.engine.test_gang_evictions import decide as decide_in_racks

from hekla.domain.resources import Resources
from hekla.engine import preemption_diagnosis
from hekla.engine.constraints import Requirement
from hekla.engine.decisions import Decisions, Exclusion, PendingReason, VictimCounts
from hekla.engine.model import ClusterState, DisruptionBudget, NetworkTopology, PodGroupSpec, PodStatus, QueueSpec

CODES = {"nobody_preempted", "nobody_reclaimed", "never_evicts", "queue_takes_nothing", "victims_not_counted"}
ALL_OF_IT = Resources.parse({"cpu": "4"})
TWO = [QueueSpec("q"), QueueSpec("mine")]
OWNERS = [QueueSpec("q", deserved=ALL_OF_IT), QueueSpec("mine", deserved=ALL_OF_IT)]
KEEPS = [QueueSpec("q", reclaimable=False), QueueSpec("mine")]
THREE = [*TWO, QueueSpec("other", reclaimable=False)]
BUDGET = DisruptionBudget("team", (Requirement("app", "In", ("web",)),), 1)


def eviction_reasons(decisions: Decisions, uid: str = "new") -> list[PendingReason]:
    """The reasons of a job that are about evictions."""
    return [reason for reason in decisions.reasons.get(uid, ()) if reason.code in CODES]


def low(minimum: int = 0, *, fixed: int = 0, pods: int = 4, **more: object) -> PodGroupSpec:
    """A running job whose first `fixed` pods are not preemptable. `task`: further fields of each pod."""
    task = more.pop("task", {})
    made = running("low", pods, "a", minimum=minimum, namespace="team", **more)
    return replace(made, pods=tuple(replace(t, preemptable=at >= fixed, **task) for at, t in enumerate(made.pods)))


def full_cluster(
    *other_jobs: PodGroupSpec, pods: int = 2, queues: list[QueueSpec] | None = None, **more: object
) -> ClusterState:
    """A node of four cores filled by other jobs, and a job that needs some; with `queues` in its own queue."""
    new = job("new", pods, **{"priority": 9, "queue": "mine" if queues else "q"} | more)
    return replace(state([node("a")], [*other_jobs, new], queues), budgets=(BUDGET,))


WEB = {"labels": {"app": "web"}}
NEEDED = {"priority_class": "system-node-critical"}
CAREFUL = {"annotations": {"volcano.sh/jdb-max-unavailable": "1"}}


@dataclass(frozen=True)
class Case:
    """A cluster without possible evictions, the tiers of the policy, and the counts for the pods on its only node."""

    cluster: ClusterState
    tiers: tuple[str, ...]
    spared: dict[str, int] = field(default_factory=dict)
    too_little: int = 0
    not_enough: int = 0
    excluded: dict[Exclusion, int] = field(default_factory=dict)
    more: str = ""

    def check(self, action: str, code: str) -> None:
        decisions = decide(self.cluster, action, *self.tiers, more=self.more)
        assert not decisions.evictions
        (reason,) = eviction_reasons(decisions)
        victims = VictimCounts(self.spared, self.too_little, self.not_enough, self.excluded, nodes=1, candidate_nodes=1)
        assert (reason.action, reason.code, reason.victims) == (action, code, victims)
        assert victims.considered + sum(victims.excluded.values()) == sum(one.uid != "new" for one in self._running())

    def _running(self) -> list[PodGroupSpec]:
        return [one for one in self.cluster.jobs for task in one.pods if task.status is PodStatus.RUNNING]


PREEMPT = {
    "a gang keeps its minimum": Case(full_cluster(low(3)), ("priority gang",), {"gang": 3}, not_enough=1),
    "they are not less urgent": Case(full_cluster(low(priority=9)), ("priority gang",), {"priority": 4}),
    "they are more urgent": Case(full_cluster(low(priority=10)), ("gang", "priority"), {"priority": 4}),
    "the cluster needs them": Case(full_cluster(low(task=NEEDED)), ("priority gang conformance",), {"conformance": 4}),
    "their job holds less": Case(full_cluster(low(), pods=4), ("gang drf",), {"drf": 1}, not_enough=3),
    "a budget": Case(full_cluster(low(task=WEB)), ("priority gang", "pdb"), {"pdb": 3}, not_enough=1),
    "the budget of their job": Case(full_cluster(low(**CAREFUL)), ("priority gang", "tdm"), {"tdm": 3}, not_enough=1),
    "they were just placed": Case(
        full_cluster(low(task={"scheduled_at": -60.0, "labels": {"volcano.sh/cooldown-time": "1h"}})),
        ("priority gang", "cdp"), {"cdp": 4},
    ),
    "no plugin lets anybody go": Case(
        full_cluster(low()), ("priority:enablePreemptable gang:enablePreemptable",), {"": 4}
    ),
    "each counts for the first": Case(
        full_cluster(low(3, task=NEEDED)), ("conformance gang", "priority"), {"conformance": 4}
    ),
    "some for one, some for another": Case(
        full_cluster(low(2, task=WEB)), ("gang priority", "pdb"), {"gang": 2, "pdb": 1}, not_enough=1
    ),
    "all of them are too little": Case(full_cluster(low(), pods=1, cpu="5"), ("priority gang",), too_little=4),
    "not room for all that start together": Case(full_cluster(low(), pods=5), ("priority gang",), not_enough=4),
    "some must not be evicted": Case(
        full_cluster(low(fixed=3)), ("priority gang",), {}, 0, 1, {Exclusion.NOT_PREEMPTABLE: 3}
    ),
    "in Volcano the first tier that says no": Case(
        full_cluster(low(4, priority=9)), ("priority", "gang"), {"priority": 4}, more="compatibility: volcano"
    ),
    "the least victims": Case(
        full_cluster(low(3)), ("priority gang",), {"gang": 3}, not_enough=1,
        more="configurations: [{name: preempt, arguments: {enableTopologyAwarePreemption: true}}]",
    ),
}  # fmt: skip
RECLAIM = {
    "a gang keeps its minimum": Case(
        full_cluster(low(3), queues=TWO), ("gang", "proportion"), {"gang": 3}, not_enough=1
    ),
    "a queue keeps its share": Case(
        full_cluster(low(pods=1), running("other", 3, "a", queue="other"), pods=1, queues=THREE),
        ("gang:enableReclaimable proportion",), {"proportion": 1}, excluded={Exclusion.QUEUE_NOT_RECLAIMABLE: 3},
    ),
    "a queue keeps what it owns": Case(full_cluster(low(), queues=OWNERS), ("gang capacity",), {"capacity": 4}),
    "the cluster needs them": Case(
        full_cluster(low(task=NEEDED), queues=TWO), ("gang conformance",), {"conformance": 4}
    ),
    "a budget": Case(full_cluster(low(task=WEB), queues=TWO), ("gang pdb",), {"pdb": 3}, not_enough=1),
    "no plugin lets anybody go": Case(full_cluster(low(), queues=TWO), ("gang:enableReclaimable",), {"": 4}),
    "all of them are too little": Case(full_cluster(low(), pods=1, cpu="5", queues=TWO), ("gang",), too_little=4),
    "their queue gives nothing back": Case(
        full_cluster(low(), queues=KEEPS), ("gang",), excluded={Exclusion.QUEUE_NOT_RECLAIMABLE: 4}
    ),
    "some must not be evicted": Case(
        full_cluster(low(fixed=3), queues=TWO), ("gang",), {}, 0, 1, {Exclusion.NOT_PREEMPTABLE: 3}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PREEMPT)
def test_counts_when_nothing_was_preempted(name: str) -> None:
    PREEMPT[name].check("preempt", "nobody_preempted")


@pytest.mark.parametrize("name", RECLAIM)
def test_counts_when_nothing_was_reclaimed(name: str) -> None:
    RECLAIM[name].check("reclaim", "nobody_reclaimed")


PODS_PER_RACK = 4
"""The most pods that can be close together."""
EIGHT = "a0 a0 a1 a1 b0 b0 b1 b1"
EVERYWHERE = filler("low", EIGHT, minimum=1)
RIGID = filler("low", EIGHT, minimum=6)
URGENT = filler("low", EIGHT, minimum=1, priority=10)
FIXED = filler("low", EIGHT, minimum=1, annotations={"volcano.sh/preemptable": "false"})
CRITICAL = filler("low", EIGHT, minimum=1, namespace="kube-system")
SAFE_ONLY = {"arguments": "{allowWholeBundle: false}"}
GANGS = {
    "all of them are too little": ("gangpreempt", [EVERYWHERE], 9, {}, VictimCounts(insufficient=8)),
    "they are not less urgent": ("gangpreempt", [URGENT], 5, {}, VictimCounts(excluded={Exclusion.NOT_LESS_URGENT: 8})),
    "they must not be evicted": ("gangpreempt", [FIXED], 5, {}, VictimCounts(excluded={Exclusion.NOT_PREEMPTABLE: 8})),
    "the cluster needs them": ("gangpreempt", [CRITICAL], 5, {}, VictimCounts({"conformance": 8})),
    "they go together or not at all": (
        "gangpreempt", [RIGID], 5, SAFE_ONLY, VictimCounts(insufficient=2, excluded={Exclusion.GANG_NOT_WHOLE: 6})
    ),
    "their queue gives nothing back": (
        "gangreclaim", [EVERYWHERE], 4, {"queues": KEEPS}, VictimCounts(excluded={Exclusion.QUEUE_NOT_RECLAIMABLE: 8})
    ),
    "a queue keeps its share": (
        "gangreclaim", [filler("low", "a0 a0", minimum=0), filler("big", EIGHT[6:], minimum=0, queue="other")], 2,
        {"queues": THREE}, VictimCounts({"proportion": 2}, excluded={Exclusion.QUEUE_NOT_RECLAIMABLE: 6}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GANGS)
@pytest.mark.parametrize("topology", [None, CLOSE])
def test_counts_when_no_gang_was_evicted(name: str, topology: NetworkTopology | None) -> None:
    action, other_jobs, pods, more, victims = GANGS[name]
    new = job("new", pods, cpu="2", priority=10, topology=topology, queue="mine" if "queues" in more else "q")
    decisions = decide_in_racks(action, *other_jobs, new, **more)
    assert not decisions.evictions
    (reason,) = eviction_reasons(decisions)
    if topology is None or pods <= PODS_PER_RACK:
        assert reason.victims == replace(victims, nodes=4, candidate_nodes=4)
    else:
        assert reason.victims == VictimCounts()


def test_classes_are_counted_separately() -> None:
    """A gang of a large pod and two small ones; evictions make room for one of the small ones only."""
    new = job("new", 3, priority=9)
    large = replace(new.pods[0], request=Resources.parse({"cpu": "5"}))
    cluster = state([node("a")], [low(), replace(new, pods=(large, *new.pods[1:]))])
    found = eviction_reasons(decide(cluster, "preempt", "priority gang"))
    counts = [
        (r.pods, r.need.quantities()["cpu"], r.victims.insufficient, r.victims.not_enough_for_job)
        for r in found
        if r.victims
    ]
    assert sorted(counts) == [(1, "5", 4, 0), (2, "1", 0, 4)]


def test_pods_that_never_preempt_have_their_own_reason() -> None:
    (reason,) = eviction_reasons(decide(full_cluster(low(), task={"never_preempts": True}), "preempt", "priority gang"))
    assert (reason.code, reason.pods, reason.victims) == ("never_evicts", 2, None)


@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
def test_queue_at_its_share_reclaims_nothing(action: str) -> None:
    other_jobs = running("own", 2, "a", queue="mine"), low(pods=2)
    (reason,) = eviction_reasons(decide(full_cluster(*other_jobs, queues=TWO), action, "gang proportion"))
    assert (reason.code, reason.pods, reason.victims) == ("queue_takes_nothing", 2, None)


@pytest.mark.parametrize("action", ["preempt", "reclaim", "gangpreempt", "gangreclaim"])
def test_job_with_successful_evictions_has_no_diagnosis(action: str) -> None:
    decisions = decide(full_cluster(low(), queues=TWO if "reclaim" in action else None), action, "gang", "priority")
    assert decisions.evictions
    assert not eviction_reasons(decisions)


def test_job_that_gets_room_by_a_later_action_has_no_diagnosis() -> None:
    """Its own queue has no victims, but another queue gives its share back."""
    cluster = full_cluster(low(), queues=TWO)
    assert eviction_reasons(decide(cluster, "preempt", "gang", "priority"))
    decisions = decide(cluster, "preempt, reclaim", "gang", "priority")
    assert decisions.evictions
    assert not eviction_reasons(decisions)


def test_limits_of_counting_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preemption_diagnosis, "MAX_COUNTS", 1)
    monkeypatch.setattr(preemption_diagnosis, "MAX_NODES", 2)
    nodes = [node(name) for name in "abc"]
    jobs = [running(f"low-{name}", 4, name, priority=9) for name in "abc"]
    cluster = state(nodes, [*jobs, job("new", priority=9), job("later", 3, priority=5)])
    decisions = decide(cluster, "preempt", "priority gang")
    (counted,) = eviction_reasons(decisions)
    assert counted.victims == VictimCounts({"gang": 8}, nodes=2, candidate_nodes=3)
    (reason,) = eviction_reasons(decisions, "later")
    assert (reason.code, reason.pods, reason.victims) == ("victims_not_counted", 3, None)
