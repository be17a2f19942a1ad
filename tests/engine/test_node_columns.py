"""Scores of one node, computed with numbers, equal those of many nodes, computed with columns, bit by bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.builders import job, node, state
from tests.support.examples import examples

from hekla.domain.resources import Resources
from hekla.engine import registry
from hekla.engine.columns import NodeTable
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.model import ClusterState, NodeSpec, PodGroupSpec, PodSpec, PodStatus
from hekla.engine.node_columns import NodeColumns, NodeNumbers, RequestColumns
from hekla.engine.node_states import steps_of
from hekla.engine.policy import parse
from hekla.engine.scheduler_cache import SchedulerCache
from hekla.engine.session import Session
from hekla.engine.state_scores import StateScores

POLICY = parse("""
actions: "allocate"
tiers:
- plugins: [{name: nodeorder, arguments: {mostrequested.weight: 2}}, {name: binpack, arguments: {binpack.resources: x}}]
""")
AMOUNTS = st.sampled_from([0.0, 1.0, 333.3, 1000.0, 7.1e9, 1e-3])
ROWS = st.lists(st.tuples(AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS), min_size=1, max_size=6)
NAMES = "cpu", "memory", "nvidia.com/gpu"


def cluster(rows: list[tuple[float, ...]], request: tuple[float, ...]) -> ClusterState:
    """Nodes with these sizes, each with a running pod, and one waiting pod."""
    nodes = [NodeSpec(f"n{at}", Resources(dict(zip(NAMES, row[:3], strict=True)))) for at, row in enumerate(rows)]
    pods = tuple(
        PodSpec(f"p{at}", f"p{at}", "w", Resources(dict(zip(NAMES, row[3:], strict=True))), PodStatus.RUNNING, f"n{at}")
        for at, row in enumerate(rows)
    )
    waiting = PodSpec("w", "w", "w", Resources(dict(zip(NAMES, request, strict=True))))
    return state(nodes, [PodGroupSpec("old", "old", "q", pods=pods), PodGroupSpec("new", "new", "q", pods=(waiting,))])


def opened(of: ClusterState) -> Session:
    session = Session(SchedulerCache.of(of), POLICY, 0.0)
    for option in (option for tier in POLICY.tiers for option in tier):
        registry.plugins()[option.name].open_session(session, option)
    return session


@given(rows=ROWS, request=st.tuples(AMOUNTS, AMOUNTS, AMOUNTS))
@settings(max_examples=examples(500), deadline=None)
def test_score_of_one_node_equals_its_score_among_many(
    rows: list[tuple[float, ...]], request: tuple[float, ...]
) -> None:
    session = opened(cluster(rows, request))
    table, pod = session.table, session.jobs["new"].pods[0]
    factories = session.functions(ExtensionPoint.COLUMN_ORDER)
    scorers = [scorer for factory in factories if (scorer := factory(pod)) is not None]
    requests = RequestColumns.of(pod.request, pod.nonzero_surplus)
    everywhere = NodeColumns.of(table.resources(np.arange(len(rows))), requests)
    for scorer in scorers:
        many = np.broadcast_to(scorer(everywhere), len(rows)).tolist()
        assert many == [scorer(numbers_of(table, row, requests)) for row in range(len(rows))]
    assert session.node_fit(pod).best_node() == opened(cluster(rows, request)).node_fit(pod).best_node()


def numbers_of(table: NodeTable, row: int, requests: RequestColumns) -> NodeNumbers:
    _idle, used, expected, allocatable, *_ = table.amounts_of(row)
    return NodeNumbers(requests, allocatable, used, expected, table.nonzero_surplus[row].tolist())


def test_rows_have_one_state_while_their_resources_are_equal() -> None:
    session = opened(state([node("a"), node("b"), node("c", cpu="8")], [job("j", 2)]))
    table, pod = session.table, session.jobs["j"].pods[0]
    assert states(table) == [0, 0, 1]
    session.place(pod, 0, PodStatus.ALLOCATED)
    assert states(table) == [2, 0, 1]
    assert [part.tolist() for part in table.states.distinct()] == [[1, 2, 0], [2, 0, 1]]
    session.unplace(pod)
    assert states(table) == [0, 0, 1]


def states(table: NodeTable) -> list[int]:
    return table.states.of_rows([0, 1, 2])


@pytest.mark.parametrize("count", [1, 30])
def test_few_and_many_rows_have_the_same_steps(count: int) -> None:
    """Few rows are examined one by one, many together."""
    nodes = [node(f"n{at:02}", cpu=f"{at % 7 + 1}", memory=f"{at + 1}Gi") for at in range(30)]
    session = opened(state(nodes, [job("j", 2, cpu="3")]))
    scores = session.node_fit(session.jobs["j"].pods[0])._state_scores
    expected = steps_of(*scores.of_candidates())
    assert scores.of_rows(list(range(count))) == expected[:count]


@pytest.mark.parametrize("every", [1, 2, 9])
def test_candidates_have_their_steps_and_others_no_room(every: int) -> None:
    """Nodes of three states: fewer candidates than states are examined alone, more by state."""
    nodes = [node(f"n{at:02}", cpu=f"{at % 3 + 2}") for at in range(12)]
    session = opened(state(nodes, [job("j", 2, cpu="2")]))
    pod, rows = session.jobs["j"].pods[0], list(range(0, 12, every))
    scorers = [scorer for factory in session.functions(ExtensionPoint.COLUMN_ORDER) if (scorer := factory(pod))]
    candidates, request = np.isin(np.arange(12), rows), (pod.request, pod.nonzero_surplus)
    scores = StateScores(session.table, request, candidates, [], scorers)
    later, now, found = scores.of_candidates()
    assert steps_of(later[rows], now[rows], found[rows]) == scores.of_rows(rows)
    if len(rows) < len(session.table.states):
        assert later.sum() == now.sum() == len(rows)
