"""Scenarios in which the load of the nodes, measured or admitted, decides."""

from tests.controller.volcano_scenarios import Machine, Scenario, job

MEASURED = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: usage, arguments: {usage.weight: 5, thresholds: {cpu: 80, mem: 80}}}]
"""
OVERCOMMITTED = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: overcommit, arguments: {overcommit-factor: 1.2}}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""

SCENARIOS: dict[str, Scenario] = {
    "a busy node gets no pods": Scenario(
        [Machine("cpu", usage=(95, 10)), Machine("memory", usage=(10, 95)), Machine("idle", usage=(60, 60))],
        [[job("one", 3, least=1, cpu="2")], [job("two", cpu="2")]],
        MEASURED,
    ),
    "the least used node is preferred": Scenario(
        [Machine("cpu", usage=(70, 10)), Machine("memory", usage=(10, 75)), Machine("idle", usage=(20, 20))],
        [[job("one", cpu="4")], [job("two", cpu="4")], [job("three", cpu="4")]],
        MEASURED,
    ),
    "overcommitment admits no more than a part beyond the nodes": Scenario(
        [Machine("plain", "3"), Machine("plain", "3")],
        [[job("large", cpu="4")], [job("next", cpu="3")], [job("third", cpu="3")], [job("small", cpu="100m")]],
        OVERCOMMITTED,
    ),
}
