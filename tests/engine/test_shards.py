"""Shards: nodes divided among several schedulers, as a restriction or a preference."""

from dataclasses import replace

import pytest
from tests.engine.builders import POLICY, job, node, running, state

from hekla.engine import cycle
from hekla.engine.model import NodeSpec, PodStatus, Shard


def node_reached(nodes: list[NodeSpec], shard: Shard, *jobs: object) -> str:
    decisions = cycle(replace(state(nodes, [*jobs, job("new", 1, cpu="2")]), shard=shard), POLICY, 0.0)
    return next((f"{bind.node} now" for bind in decisions.binds), "") or " ".join(decisions.pipelined.values())


ENDS = job("ends", 1, cpu="4", task={"status": PodStatus.RELEASING, "node": "b"})


@pytest.mark.parametrize(
    ("is_hard", "jobs", "expected"),
    [
        (True, [], "b now"),
        (False, [], "b now"),
        (True, [running("full", 4, "b")], ""),
        (False, [running("full", 4, "b")], "a now"),
        (True, [ENDS], "b"),
        (False, [ENDS], "a now"),
        (False, [ENDS, running("full", 16, "a")], "b"),
    ],
)
def test_hard_shard_restricts_and_soft_shard_is_preferred(is_hard: bool, jobs: list, expected: str) -> None:
    nodes = [node("a", "16"), node("b", "4")]
    assert node_reached(nodes, Shard(frozenset({"b"}), is_hard=is_hard), *jobs) == expected
