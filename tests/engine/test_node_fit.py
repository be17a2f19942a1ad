"""The cached node fit of a class equals one computed from scratch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.builders import POLICY, job, node, state
from tests.support.examples import examples

from hekla.engine import registry
from hekla.engine.columns import fits
from hekla.engine.model import ClusterState, PodStatus
from hekla.engine.node_fit import NodeFit
from hekla.engine.scheduler_cache import SchedulerCache
from hekla.engine.session import Session

SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=6)


def opened(of: ClusterState) -> Session:
    session = Session(SchedulerCache.of(of), POLICY, 0.0)
    for option in (option for tier in POLICY.tiers for option in tier):
        registry.plugins()[option.name].open_session(session, option)
    return session


@given(nodes=SIZES, choices=st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=40))
@settings(max_examples=examples(100), deadline=None)
def test_cached_node_fit_equals_a_new_one(nodes: list[int], choices: list[tuple[int, bool]]) -> None:
    """Pods of three classes are placed one after another, and some are unplaced at once."""
    jobs = [job(f"j{number}", 40, cpu=f"{number + 1}") for number in range(3)]
    session = opened(state([node(f"n{at}", str(size)) for at, size in enumerate(nodes)], jobs))
    waiting = {number: list(session.jobs[f"j{number}"].pods) for number in range(3)}
    for number, stays_placed in choices:
        member = waiting[number].pop()
        cached, fresh = session.node_fit(member), NodeFit(member, session.table, session.functions)
        assert cached.best_node() == fresh.best_node()
        assert cached.fit_error(session.dimensions) == fresh.fit_error(session.dimensions)
        if best := cached.best_node():
            session.place(member, best[0], PodStatus.ALLOCATED if best[1] else PodStatus.PIPELINED)
            if not stays_placed:
                session.unplace(member)


@given(
    nodes=st.lists(st.integers(1, 9), min_size=3, max_size=12),
    choices=st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=20),
)
@settings(max_examples=examples(100), deadline=None)
def test_class_examined_with_others_equals_a_new_one(nodes: list[int], choices: list[tuple[int, bool]]) -> None:
    """Six classes for one node in three each are examined together; pods are placed before some of them are used."""
    parts = [{"node_selector": {"part": f"{number % 3}"}} for number in range(6)]
    jobs = [job(f"j{number}", 20, cpu=f"{number + 1}", task=part) for number, part in enumerate(parts)]
    room = [node(f"n{at}", str(size), labels={"part": f"{at % 3}"}) for at, size in enumerate(nodes)]
    session = opened(state(room, jobs))
    waiting = {number: list(session.jobs[f"j{number}"].pods) for number in range(6)}
    for pods in waiting.values():
        session.node_fit(pods[0])
    for number, is_pipelined in choices:
        pod = waiting[number].pop()
        together, fresh = session.node_fit(pod), NodeFit(pod, session.table, session.functions)
        assert together.best_node() == fresh.best_node()
        rows = fresh.with_room()
        assert together.with_room().tolist() == rows.tolist()
        assert together.scores(rows)[rows].tolist() == fresh.scores(rows)[rows].tolist()
        if best := fresh.best_node():
            session.place(pod, best[0], PodStatus.PIPELINED if is_pipelined else PodStatus.ALLOCATED)


@pytest.mark.parametrize("count", [100, 1000])
def test_fits_of_many_rows_equals_fits_of_each(count: int) -> None:
    room = np.random.default_rng(1).integers(-1, 4, size=(count, 3)).astype(float)
    requests = np.random.default_rng(2).integers(0, 3, size=(count, 3)).astype(float)
    assert fits(requests[0], room).tolist() == [bool(fits(requests[0], row)) for row in room]
    assert fits(requests, room).tolist() == [bool(fits(*pair)) for pair in zip(requests, room, strict=True)]
