"""Properties of one cycle in random clusters: no overcommitted node, no partial gang, reasons, determinism."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.builders import POLICY, bound, job, node, state
from tests.support.examples import examples

from hekla.domain.phases import GangPhase
from hekla.engine import cycle
from hekla.engine.model import ClusterState, QueueSpec


@st.composite
def clusters(draw: st.DrawFn) -> ClusterState:
    nodes = [node(f"n{i}", str(draw(st.integers(1, 8)))) for i in range(draw(st.integers(1, 5)))]
    queues = [
        QueueSpec(f"q{i}", weight=draw(st.integers(1, 4)), created_at=float(i)) for i in range(draw(st.integers(1, 3)))
    ]
    jobs = []
    for number in range(draw(st.integers(1, 8))):
        pods = draw(st.integers(1, 6))
        jobs.append(
            job(
                f"j{number}",
                pods,
                cpu=str(draw(st.integers(1, 4))),
                minimum=draw(st.integers(1, pods)),
                queue=draw(st.sampled_from(queues)).name,
                priority=draw(st.integers(0, 2)),
                phase=draw(st.sampled_from([GangPhase.PENDING, GangPhase.INQUEUE])),
                created_at=float(draw(st.integers(0, 3))),
            )
        )
    return state(nodes, jobs, queues)


@given(clusters())
@settings(max_examples=examples(200), deadline=None)
def test_no_node_exceeds_its_allocatable(cluster: ClusterState) -> None:
    requests = {task.uid: task.request for one in cluster.jobs for task in one.pods}
    used: dict[str, float] = {}
    for bind in cycle(cluster, POLICY, 0.0).binds:
        used[bind.node] = used.get(bind.node, 0.0) + requests[bind.pod].amount("cpu")
    for one in cluster.nodes:
        assert used.get(one.name, 0.0) <= one.allocatable.amount("cpu")


@given(clusters())
@settings(max_examples=examples(200), deadline=None)
def test_no_gang_starts_below_its_minimum_and_no_pod_twice(cluster: ClusterState) -> None:
    decisions = cycle(cluster, POLICY, 0.0)
    least = {one.uid: one.min_available for one in cluster.jobs}
    assert all(count >= least[uid] for uid, count in bound(decisions).items())
    assert len({bind.pod for bind in decisions.binds}) == len(decisions.binds)


@given(clusters())
@settings(max_examples=examples(200), deadline=None)
def test_each_waiting_job_has_a_reason(cluster: ClusterState) -> None:
    decisions = cycle(cluster, POLICY, 0.0)
    placed = bound(decisions)
    for one in cluster.jobs:
        was_just_admitted = one.phase is GangPhase.PENDING and decisions.phases[one.uid] is GangPhase.INQUEUE
        is_promised = any(task.uid in decisions.pipelined for task in one.pods)
        if not placed.get(one.uid) and not was_just_admitted and not is_promised:
            assert decisions.reasons.get(one.uid), one.uid


@given(clusters(), st.randoms(use_true_random=False))
@settings(max_examples=examples(100), deadline=None)
def test_binds_do_not_depend_on_the_order_of_nodes_and_jobs(cluster: ClusterState, dice: object) -> None:
    shuffled = [list(cluster.nodes), list(cluster.jobs)]
    for part in shuffled:
        dice.shuffle(part)
    other = ClusterState(tuple(shuffled[0]), cluster.queues, tuple(shuffled[1]))
    assert sorted(map(repr, cycle(cluster, POLICY, 0.0).binds)) == sorted(map(repr, cycle(other, POLICY, 0.0).binds))
