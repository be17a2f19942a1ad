"""All plugins at once, in any cluster: none fails, no machine is given out twice, no gang starts in part."""

import pytest
from hypothesis import given, settings
from tests.engine.test_properties import clusters
from tests.engine.worlds import bound
from tests.support.examples import examples

from hekla.engine import cycle, registry
from hekla.engine.model import ClusterState
from hekla.engine.policy import parse

_ALL = ", ".join(f"{{name: {name}}}" for name in sorted(registry.plugins()) if name not in ("capacity", "nodegroup"))
_TEXT = (
    "actions: '{actions}'\ntiers: [{{plugins: [{{name: priority}}, {{name: gang}}]}}, {{plugins: [{all}]}}]\n"
    "compatibility: {compatibility}"
)


@pytest.mark.parametrize("compatibility", ["hekla", "volcano"])
@given(cluster=clusters())
@settings(max_examples=examples(60), deadline=None)
def test_together_they_decide_soundly(compatibility: str, cluster: ClusterState) -> None:
    actions = "enqueue, allocate, preempt, reclaim, backfill"
    policy = parse(_TEXT.format(actions=actions, all=_ALL, compatibility=compatibility))
    decisions = cycle(cluster, policy, 10_000.0)
    assert not decisions.faults
    least = {one.uid: one.min_available for one in cluster.jobs}
    assert all(count >= least[uid] for uid, count in bound(decisions).items())
    requests = {task.uid: task.request.amount("cpu") for one in cluster.jobs for task in one.pods}
    for node in cluster.nodes:
        given_out = sum(requests[bind.pod] for bind in decisions.binds if bind.node == node.name)
        assert given_out <= node.allocatable.amount("cpu")
