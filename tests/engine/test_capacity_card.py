"""The plugin capacity-card: limits of queues on the cards of each model."""

from dataclasses import replace
from typing import Any

import pytest
from tests.engine.builders import bound, decide, job, running

from hekla.domain.resources import Resources
from hekla.engine.decisions import Decisions
from hekla.engine.model import NodeSpec, PodGroupSpec, QueueSpec
from hekla.engine.policy import parse

GPU, MIG, NPU = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "huawei.com/Ascend910"
POLICY = parse(
    "actions: 'enqueue, allocate'\n"
    "tiers: [{plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: capacity-card}]}]"
)
A100 = {"nvidia.com/gpu.product": "NVIDIA-A100"}
H100 = {"nvidia.com/gpu.product": "NVIDIA-H100"}


def server(name: str, labels: dict[str, str] | None = None, **cards: str) -> NodeSpec:
    return NodeSpec(name, Resources.parse({"cpu": "64", "memory": "1Ti", "pods": "110", **cards}), labels=labels or {})


NODES = [server("a", A100, **{GPU: "8"}), server("h", H100, **{GPU: "8"}), server("cpu")]


def asking(group: PodGroupSpec, resource: str = GPU, count: str = "1", models: str = "") -> PodGroupSpec:
    """The job with cards for each pod, of these models."""
    fields: dict[str, Any] = {"annotations": {"volcano.sh/card.name": models}} if models else {}
    request = Resources.parse({"cpu": "1", resource: count})
    return replace(group, pods=tuple(replace(pod, request=request, **fields) for pod in group.pods))


def queue(quota: str, name: str = "q", **more: Any) -> QueueSpec:
    return QueueSpec(name, annotations={"volcano.sh/card.quota": quota}, **more)


def nodes_of(decisions: Decisions) -> dict[str, int]:
    counts: dict[str, int] = {}
    for bind in decisions.binds:
        counts[bind.node] = counts.get(bind.node, 0) + 1
    return counts


def refusals(decisions: Decisions, uid: str) -> set[str]:
    return {why for reason in decisions.reasons[uid] for why in reason.nodes}


@pytest.mark.parametrize(
    ("quota", "used"),
    [
        ('{"NVIDIA-A100": 2, "NVIDIA-H100": 3}', {"a": 2, "h": 3}),
        ('{"NVIDIA-A100": 2}', {"a": 2}),
        ('{"NVIDIA-A100": 9, "NVIDIA-H100": 0}', {"a": 8}),
        ("{}", {}),
        ("[nonsense", {}),
    ],
)
def test_queue_holds_at_most_its_cards_of_each_model(quota: str, used: dict[str, int]) -> None:
    """A model without a limit counts as 0, as in Volcano."""
    jobs = [asking(job(f"j{number:02}")) for number in range(16)]
    decisions = decide(NODES, jobs, [queue(quota)], POLICY)
    assert nodes_of(decisions) == used


def test_queue_without_limits_uses_every_card() -> None:
    jobs = [asking(job(f"j{number:02}")) for number in range(16)]
    assert nodes_of(decide(NODES, jobs, [QueueSpec("q")], POLICY)) == {"a": 8, "h": 8}


def test_running_pods_count_and_the_reason_names_the_model() -> None:
    old = asking(running("old", 2, "a"))
    decisions = decide(NODES, [old, asking(job("new"))], [queue('{"NVIDIA-A100": 2}')], POLICY)
    assert not decisions.binds
    assert refusals(decisions, "new") == {
        "card quota used up: NVIDIA-A100", "card quota too small: NVIDIA-H100", f"insufficient {GPU}"
    }  # fmt: skip
    assert all(reason.ever for reason in decisions.reasons["new"])


def test_request_above_every_limit_can_never_start() -> None:
    decisions = decide(NODES, [asking(job("big"), count="4")], [queue('{"NVIDIA-A100": 2, "NVIDIA-H100": 3}')], POLICY)
    assert not all(reason.ever for reason in decisions.reasons["big"])


def test_gang_starts_as_a_whole_or_not() -> None:
    limits = queue('{"NVIDIA-A100": 4}')
    assert not decide(NODES, [asking(job("gang", 5))], [limits], POLICY).binds
    assert nodes_of(decide(NODES, [asking(job("gang", 4))], [limits], POLICY)) == {"a": 4}


def test_parts_of_cards_have_limits_of_their_own() -> None:
    nodes = [server("a", A100, **{GPU: "4", MIG: "7"})]
    limits = queue('{"NVIDIA-A100/mig-1g.5gb-mixed": 2, "NVIDIA-A100": 1}')
    jobs = [asking(job(f"m{number}"), MIG) for number in range(3)] + [asking(job(f"g{number}")) for number in range(3)]
    assert sorted(bound(decide(nodes, jobs, [limits], POLICY))) == ["g0", "m0", "m1"]


def test_cards_without_a_model_have_the_name_of_their_resource() -> None:
    nodes = [server("n", **{NPU: "8"})]
    jobs = [asking(job(f"n{number}"), NPU) for number in range(3)]
    assert len(decide(nodes, jobs, [queue(f'{{"{NPU}": 2}}')], POLICY).binds) == 2


def test_children_count_for_their_parent() -> None:
    queues = [queue('{"NVIDIA-A100": 3}', "top"), QueueSpec("x", parent="top"), QueueSpec("y", parent="top")]
    jobs = [asking(job(f"{name}{number}", queue=name)) for number in range(3) for name in ("x", "y")]
    assert nodes_of(decide(NODES, jobs, queues, POLICY)) == {"a": 3}


@pytest.mark.parametrize(
    ("models", "used"),
    [
        ("NVIDIA-H100", {"h": 1}),
        ("NVIDIA-A100", {"a": 1}),
        ("NVIDIA-H100|NVIDIA-A100", {"h": 1}),
        ("NVIDIA-A100|NVIDIA-H100", {"a": 1}),
        ("NVIDIA-B200|NVIDIA-H100", {"h": 1}),
        ("NVIDIA-B200", {}),
    ],
)
def test_job_names_its_models_the_best_first(models: str, used: dict[str, int]) -> None:
    assert nodes_of(decide(NODES, [asking(job("one"), models=models)], [QueueSpec("q")], POLICY)) == used


def test_job_takes_its_next_model_when_the_first_is_at_the_limit() -> None:
    jobs = [asking(job(f"j{number}"), models="NVIDIA-H100|NVIDIA-A100") for number in range(4)]
    limits = queue('{"NVIDIA-A100": 8, "NVIDIA-H100": 1}')
    assert nodes_of(decide(NODES, jobs, [limits], POLICY)) == {"a": 3, "h": 1}


def test_pods_without_cards_are_not_limited() -> None:
    assert len(decide(NODES, [job("plain", 3)], [queue("{}")], POLICY).binds) == 3


PREEMPTING = parse(
    "actions: 'enqueue, allocate, preempt, reclaim'\n"
    "tiers: [{plugins: [{name: priority}, {name: gang}]}, {plugins: [{name: predicates}, {name: capacity-card}]}]"
)


def low(name: str, at: str, queue_name: str = "q", resource: str = GPU) -> PodGroupSpec:
    """A running job of one pod that may be evicted."""
    return replace(asking(running(name, 1, at, minimum=0), resource), queue=queue_name)


@pytest.mark.parametrize("compatibility", ["hekla", "volcano"])
def test_preemption_frees_the_cards_of_a_limit(compatibility: str) -> None:
    """Cards are idle on both nodes; the limit of the queue is used up on the first."""
    policy = replace(PREEMPTING, compatibility=compatibility)
    jobs = [low("old", "a"), asking(job("new", priority=9))]
    decisions = decide(NODES, jobs, [queue('{"NVIDIA-A100": 1}')], policy)
    assert [eviction.pod for eviction in decisions.evictions] == ["old/0"]
    assert decisions.nominated == {"new/0": "a"}


@pytest.mark.parametrize(
    ("old", "quota"),
    [
        (low("old", "a"), '{"NVIDIA-H100": 0}'),  # no limit allows the pod
        (low("old", "a", "other"), '{"NVIDIA-A100": 0}'),
        (low("old", "a", "other"), '{"NVIDIA-A100": 1}'),  # the limit is not used up
        (low("old", "cpu", resource="cpu"), '{"NVIDIA-A100": 0}'),
    ],
)
def test_no_pod_is_evicted_if_that_frees_no_card_of_the_limit(old: PodGroupSpec, quota: str) -> None:
    jobs = [old, asking(job("new", priority=9))]
    decisions = decide(NODES, jobs, [queue(quota), QueueSpec("other")], PREEMPTING)
    assert not decisions.evictions


def test_limit_of_a_parent_is_freed_by_its_own_queue_only() -> None:
    """Evictions by reclaim in other queues help no limit of the own queue."""
    queues = [queue('{"NVIDIA-A100": 1}'), QueueSpec("other")]
    held = [low("mine", "a"), low("theirs", "a", "other")]
    decisions = decide(NODES, [*held, asking(job("new"))], queues, PREEMPTING)
    assert not decisions.evictions
