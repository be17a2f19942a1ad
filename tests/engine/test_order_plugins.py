"""Order plugins: fair shares between namespaces, and the job order of each queue."""

import pytest
from tests.engine.builders import bound, decide, job, node, running

from hekla.engine.model import PodGroupSpec, QueueSpec
from hekla.engine.policy import parse

POLICY = "actions: allocate\ntiers: [{plugins: [%s, {name: priority}, {name: gang}, {name: drf}]}]"


def first(plugin: str, jobs: list[PodGroupSpec], queue: QueueSpec | None = None) -> str:
    """The name of the job that gets the only free core."""
    held = sum(len(one.pods) for one in jobs if one.pods[0].node)
    decisions = decide([node("a", str(held + 1))], jobs, [queue or QueueSpec("q")], parse(POLICY % plugin))
    (name,) = bound(decisions)
    return name


def test_namespace_that_holds_less_is_first() -> None:
    jobs = [
        running("old", 2, "a", namespace="rich"),
        job("a-rich", namespace="rich", priority=9),
        job("z-poor", namespace="poor"),
    ]
    assert first("{name: namespace-order}", jobs) == "z-poor"


def test_namespace_with_more_weight_may_hold_more() -> None:
    jobs = [
        *(running(f"old-{n}", 2, "a", namespace=n) for n in ("big", "small")),
        job("z", namespace="big"),
        job("a", namespace="small"),
    ]
    assert first("{name: namespace-order, arguments: {weights: {big: 3}}}", jobs) == "z"
    assert first("{name: namespace-order, arguments: {weights: {small: 3}}}", jobs) == "a"


def test_namespaces_alternate() -> None:
    jobs = [job(f"{team}-{n}", namespace=team) for team in ("a", "b") for n in range(4)]
    counts = bound(decide([node("n", "4")], jobs, policy=parse(POLICY % "{name: namespace-order}")))
    assert sorted(name[0] for name in counts) == ["a", "a", "b", "b"]


SLA = "volcano.sh/sla-waiting-time"


@pytest.mark.parametrize(
    ("order", "winner"), [("fifo", "early"), ("priority", "urgent"), ("sla", "bound"), ("fair", "poor"), ("", "urgent")]
)
def test_job_order_of_a_queue(order: str, winner: str) -> None:
    jobs = [
        running("old", 2, "a", namespace="rich"),
        job("early", namespace="rich", created_at=1.0, annotations={SLA: "10h"}),
        job("urgent", namespace="rich", created_at=2.0, priority=9),
        job("bound", namespace="rich", created_at=3.0, annotations={SLA: "5m"}),
        job("poor", namespace="poor", created_at=4.0),
    ]
    annotations = {"hekla.io/job-order": order} if order else {}
    assert first("{name: queue-policy}", jobs, QueueSpec("q", annotations=annotations)) == winner


def test_default_order_is_an_argument_and_unknown_orders_are_ignored() -> None:
    jobs = [job("early", created_at=1.0), job("urgent", created_at=2.0, priority=9)]
    assert first("{name: queue-policy, arguments: {default: fifo}}", jobs) == "early"
    odd = QueueSpec("q", annotations={"hekla.io/job-order": "dice"})
    assert first("{name: queue-policy, arguments: {default: fifo}}", jobs, odd) == "urgent"
