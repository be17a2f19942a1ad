"""The cached node fit of a class equals one computed from scratch."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.builders import POLICY, job, node, state
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
def test_cached_node_fit_equals_a_new_one(nodes: list[int], choices: list[tuple[int, bool]]) -> None:
    """Pods of three classes are placed one after another, and some are unplaced at once."""
    jobs = [job(f"j{number}", 40, cpu=f"{number + 1}") for number in range(3)]
    session = Session(
        SchedulerCache.of(state([node(f"n{at}", str(size)) for at, size in enumerate(nodes)], jobs)), POLICY, 0.0
    )
    for option in (option for tier in POLICY.tiers for option in tier):
        registry.plugins()[option.name].open_session(session, option)
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


def test_fits_of_many_rows_equals_fits_of_each() -> None:
    room = np.random.default_rng(1).integers(-1, 4, size=(1000, 3)).astype(float)
    request = np.array([1.0, 0.0, 2.0])
    assert fits(request, room).tolist() == [bool(fits(request, row)) for row in room]
