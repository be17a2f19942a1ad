"""Scenarios in which pods are evicted, within disruption budgets."""

from tests.controller.volcano_scenarios import Machine, Scenario, job

PREEMPTING = """\
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: pdb}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
RECLAIMING = """\
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: pdb}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""
_HIGH = {"high": 1000}
_HALVES = {name: {"deserved": {"cpu": "2", "memory": "4Gi"}} for name in ("red", "blue")}
_ON_A, _ON_B = {"nodeSelector": {"use": "a"}}, {"nodeSelector": {"use": "b"}}
_APART = [Machine("a", labels={"use": "a"}), Machine("b", labels={"use": "b"})]

SCENARIOS: dict[str, Scenario] = {
    "without a budget, pods of lower priority give way": Scenario(
        [Machine("full")],
        [[job("web", 4, least=1, task="web")], [job("urgent", cpu="2", priorityClassName="high")]],
        PREEMPTING,
        priorities=_HIGH,
    ),
    "a budget protects the pods of one job, not those of another without labels": Scenario(
        _APART,
        [
            [
                job("web", 2, least=1, cpu="2", task="web", **_ON_A),
                job("plain", 2, least=1, cpu="2", **_ON_B),
            ],
            [job("urgent", cpu="2", priorityClassName="high")],
            [job("next", cpu="2", priorityClassName="high")],
        ],
        PREEMPTING,
        priorities=_HIGH,
        budgets={"web": 2},
    ),
    "a budget that one eviction uses up": Scenario(
        [Machine("full")],
        [
            [job("web", 4, least=1, task="web")],
            [job("first", priorityClassName="high")],
            [job("second", priorityClassName="high")],
        ],
        PREEMPTING,
        priorities=_HIGH,
        budgets={"web": 3},
    ),
    "a budget too small for what a pod needs": Scenario(
        [Machine("full")],
        [
            [job("web", 4, least=1, task="web")],
            [job("large", cpu="2", priorityClassName="high")],
            [job("small", cpu="1", priorityClassName="high")],
        ],
        PREEMPTING,
        priorities=_HIGH,
        budgets={"web": 3},
    ),
    "a budget decides which pod of another queue is reclaimed": Scenario(
        [Machine("full")],
        [
            [
                job("web", 2, least=1, task="web", queue="red"),
                job("plain", 2, least=1, queue="red"),
            ],
            [job("late", queue="blue")],
        ],
        RECLAIMING,
        queues=_HALVES,
        budgets={"web": 2},
    ),
}
