"""What is kept of a class between placements is what one would find on looking afresh."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.worlds import POLICY, job, node, state
from tests.support.examples import examples

from hekla.engine import registry
from hekla.engine.columns import fits
from hekla.engine.model import PodStatus
from hekla.engine.node_fit import NodeFit
from hekla.engine.scheduler_cache import SchedulerCache
from hekla.engine.session import Session

SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=6)


@given(nodes=SIZES, choices=st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=40))
@settings(max_examples=examples(100), deadline=None)
def test_the_best_place_is_the_same_as_on_a_fresh_look(nodes: list[int], choices: list[tuple[int, bool]]) -> None:
    """Tasks of three classes are placed one after another, and some are taken back at once."""
    jobs = [job(f"j{number}", 40, cpu=f"{number + 1}") for number in range(3)]
    session = Session(
        SchedulerCache.of(state([node(f"n{at}", str(size)) for at, size in enumerate(nodes)], jobs)), POLICY, 0.0
    )
    for option in (option for tier in POLICY.tiers for option in tier):
        registry.plugins()[option.name].open_session(session, option)
    waiting = {number: list(session.jobs[f"j{number}"].pods) for number in range(3)}
    for number, is_kept in choices:
        member = waiting[number].pop()
        kept, fresh = session.node_fit(member), NodeFit(member, session.table, session.functions)
        assert kept.best_node() == fresh.best_node()
        assert kept.fit_error(session.dimensions) == fresh.fit_error(session.dimensions)
        if best := kept.best_node():
            session.place(member, best[0], PodStatus.ALLOCATED if best[1] else PodStatus.PIPELINED)
            if not is_kept:
                session.unplace(member)


def test_many_rows_are_answered_as_each_of_them_alone() -> None:
    room = np.random.default_rng(1).integers(-1, 4, size=(1000, 3)).astype(float)
    request = np.array([1.0, 0.0, 2.0])
    assert fits(request, room).tolist() == [bool(fits(request, row)) for row in room]
