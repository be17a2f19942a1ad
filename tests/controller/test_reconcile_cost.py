"""What a reconciliation reads and writes follows from what changed, not from what exists."""

from pathlib import Path

import pytest

from hekla.apps.clusters.models import Cluster, Node
from hekla.bench.reconcile import rounds, world
from hekla.bench.reconcile.rounds import Rounds
from hekla.bench.reconcile.size import ClusterSize
from hekla.bench.reconcile.world import BenchWorld
from hekla.lib import clock
from hekla.scheduling.cache import read_snapshot

SIZE = ClusterSize(nodes=10, pods=300, changed=5)
READ_ALL = {"new leader", "everything read"}
MOST_STATEMENTS = 80
"""Per reconciliation, if one job ends and another is submitted; some renewals of the lease are included."""


@pytest.fixture
def measured(transactional_db: None, settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rounds:
    settings.HEKLA_HOME = tmp_path
    monkeypatch.setattr(rounds, "settle", lambda: None)
    world.fill(SIZE)
    found = Rounds(BenchWorld.load(SIZE))
    found.measure(1)
    return found


def test_statements_and_rows_do_not_grow_with_unchanged_pods(measured: Rounds) -> None:
    costs = {kind: some[0].whole for kind, some in measured.found.items()}
    assert all(costs[kind].rows > SIZE.pods for kind in READ_ALL)
    few = {kind: (cost.statements, cost.rows) for kind, cost in costs.items() if kind not in READ_ALL}
    assert all(statements < MOST_STATEMENTS and rows < SIZE.pods / 2 for statements, rows in few.values()), few
    assert costs["nodes unchanged"].rows <= SIZE.nodes + 20
    assert costs["usage unchanged"].rows <= SIZE.nodes + 20
    _check_result(measured)


def _check_result(measured: Rounds) -> None:
    """Rows that others changed are as reported again, and the cache agrees with the rows."""
    cluster = Cluster.objects.get()
    assert not Node.objects.filter(is_ready=False).exists()
    cache, fresh = measured.controller.cache, read_snapshot(cluster, now=clock.now()).state
    cache.refresh(cluster, {}, now=clock.now())
    state = cache.snapshot(cluster).state
    assert (state.nodes, state.jobs) == (fresh.nodes, fresh.jobs)
    assert all(node.usage for node in state.nodes)
