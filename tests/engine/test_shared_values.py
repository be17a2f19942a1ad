"""Values that many jobs share without an entry each, and decisions that use them."""

from dataclasses import replace

import pytest
from tests.engine.builders import POLICY, job, node, state

from hekla.domain.phases import GangPhase
from hekla.engine import audit, cycle, job_phases, shared_values
from hekla.engine.decisions import Cause, Decisions, PendingReason
from hekla.engine.model import ClusterState
from hekla.engine.scheduler_cache import SchedulerCache
from hekla.engine.shared_values import ReasonsByJob, SharedValues

ONE, OTHER = ((PendingReason(Cause.CAPACITY, "allocate", "resources", code),) for code in ("one", "other"))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two jobs are many."""
    for module in (shared_values, job_phases):
        monkeypatch.setattr(module, "MANY", 2)


def test_own_values_come_before_shared_ones_and_later_before_earlier() -> None:
    found = SharedValues({"b": 1}, [({"a", "b", "c"}, 2), ({"c"}, 3)])
    assert found == {"a": 2, "b": 1, "c": 3}
    assert (len(found), found.get("z"), "z" in found) == (3, None, False)
    assert found.with_own({"z": 4, "a": 5}) == {"a": 5, "b": 1, "c": 3, "z": 4}
    with pytest.raises(KeyError):
        found["z"]


def test_reasons_of_one_job_can_change_after_they_were_shared(few) -> None:
    reasons = ReasonsByJob()
    reasons["a"] = OTHER
    reasons.share(["a", "b", "c", "d"], ONE)
    assert (reasons["a"], reasons["z"]) == (ONE, ())
    reasons["b"] += OTHER
    reasons.discard("c")
    assert reasons.all() == {"a": ONE, "b": (*ONE, *OTHER), "d": ONE}
    reasons.share(["b", "c"], OTHER)
    assert reasons.all() == {"a": ONE, "b": OTHER, "c": OTHER, "d": ONE}
    reasons["a"] = ()
    reasons.share(["b"], ())
    assert reasons.all() == {"c": OTHER, "d": ONE}


def crowded() -> ClusterState:
    """Equal jobs of which two fit, two that want more, and one that is refused."""
    jobs = [job(name, cpu="2", created_at=float(at)) for at, name in enumerate("abcdef")]
    jobs += [job("large", cpu="9"), job("larger", cpu="9"), replace(job("bad"), min_available=-1)]
    return state([node("n", cpu="4")], jobs)


def test_decisions_are_the_same_with_shared_values(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, cache = cycle(crowded(), POLICY, 0.0), SchedulerCache()
    for module in (shared_values, job_phases):
        monkeypatch.setattr(module, "MANY", 2)
    shared: Decisions = cycle(crowded(), POLICY, 0.0, cache=cache)
    assert isinstance(shared.reasons, SharedValues)
    assert isinstance(shared.phases, SharedValues)
    assert (dict(shared.reasons), dict(shared.phases)) == (dict(plain.reasons), dict(plain.phases))
    assert (shared.binds, shared.refused) == (plain.binds, plain.refused)
    assert shared.reasons["bad"][0].code == "not_valid"
    assert set(shared.phases.values()) == {GangPhase.INQUEUE}
    assert audit.differences(cache) == []


def test_decisions_stay_as_they_are_when_the_cache_goes_on(few) -> None:
    now, cache = crowded(), SchedulerCache()
    decisions = cycle(now, POLICY, 0.0, cache=cache)
    reasons, phases = dict(decisions.reasons), dict(decisions.phases)
    cycle(replace(now, jobs=now.jobs[1:4]), POLICY, 1.0, cache=cache)
    assert (dict(decisions.reasons), dict(decisions.phases)) == (reasons, phases)
