"""All plugins at once, in random clusters: no faults, no overcommitted node, no partial gang."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from tests.engine.builders import bound
from tests.engine.test_properties import clusters
from tests.support.examples import examples

from hekla.engine import cycle, plugins, registry
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
def test_all_plugins_together_make_valid_decisions(compatibility: str, cluster: ClusterState) -> None:
    actions = "enqueue, allocate, preempt, reclaim, backfill"
    policy = parse(_TEXT.format(actions=actions, all=_ALL, compatibility=compatibility))
    decisions = cycle(cluster, policy, 10_000.0)
    assert not decisions.faults
    least = {one.uid: one.min_available for one in cluster.jobs}
    assert all(count >= least[uid] for uid, count in bound(decisions).items())
    requests = {task.uid: task.request.amount("cpu") for one in cluster.jobs for task in one.pods}
    for node in cluster.nodes:
        requested = sum(requests[bind.pod] for bind in decisions.binds if bind.node == node.name)
        assert requested <= node.allocatable.amount("cpu")


def test_plugins_declare_the_annotations_of_nodes_that_they_read() -> None:
    """Others are not stored, so a plugin that forgets to declare one would never get it."""
    folder, reads = Path(plugins.__file__).parent, re.compile(r"\bnode\.annotations\b")
    names = {path.relative_to(folder).parts[0].removesuffix(".py") for path in folder.rglob("*.py")
             if reads.search(path.read_text(encoding="utf-8"))}  # fmt: skip
    assert len(names) > 2, "the search pattern is broken"
    declaring = {name for name in names if getattr(registry.plugins()[name.replace("_", "-")], "NODE_ANNOTATIONS", ())}
    assert declaring == names
    assert {"hekla.io/cached-datasets", "volcano.sh/oversubscription-cpu"} < registry.node_annotations()
