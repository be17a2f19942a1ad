"""The order of the event log bounds the times of a workload, and differences say where the record ends."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hekla.engine.model import ClusterState, QueueSpec
from hekla.engine.policy import DEFAULT_POLICY_TEXT, parse
from hekla.engine.session import Session
from hekla.simulation.lab import results, simulated_run, synthetic
from hekla.simulation.lab.synthetic import SyntheticSize
from hekla.simulation.lab.workload import HOUR, RecordedBind, RecordGap, Workload
from hekla.simulation.recorded_times import ordered_times

JOB, POD = "job:a", ("w", 0, 1)


def event(second: float, kind: str, pod: Any = None, new: str = "", subject: str = JOB) -> Any:
    return datetime.fromtimestamp(second, UTC), kind, subject, False, pod, new, None


def test_what_stands_behind_a_decision_was_not_visible_to_it() -> None:
    found = ordered_times(
        [
            event(10, "JobSubmitted"),
            event(12, "PodBound", POD),
            event(11, "PodPhaseChanged", POD, "succeeded"),  # it had ended before the decision, and was seen after it
            event(15, "PodBound", ("w", 1, 1)),
            event(14, "GangPhaseChanged", new="completed"),  # follows from pods: no decision
            event(16, "PodStopRequested", ("w", 1, 1)),
        ]
    )
    assert found.instants == (12_000, 15_000)
    assert found.submitted == {JOB: 10_000}
    assert found.ends == {(JOB, *POD): 12_001}
    assert found.stops == {(JOB, "w", 1, 1): 16_000}


def test_what_a_decision_saw_is_not_after_it() -> None:
    found = ordered_times([event(12.01, "JobSubmitted"), event(12, "PodBound", POD)])
    assert found.submitted == {JOB: 12_000}


def test_two_decisions_of_one_instant_stay_apart() -> None:
    found = ordered_times([event(12, "PodBound", POD), event(12, "JobSubmitted"), event(12, "PodBound", POD)])
    assert found.instants == (12_000, 12_001)
    assert found.submitted == {JOB: 12_001}


def test_jobs_that_differ_are_listed_with_what_their_record_lacks() -> None:
    jobs = [synthetic.job(f"j{at}", 0, HOUR, cards=8) for at in range(3)]
    workload = Workload(0, 10 * HOUR, ClusterState(synthetic.nodes(1), (QueueSpec("queue-0"),), ()), tuple(jobs))
    outcome = simulated_run.run(workload, parse(DEFAULT_POLICY_TEXT))
    recorded = results.as_recorded(workload, outcome.histories)
    others = [
        replace(job, history=replace(job.history, binds=(RecordedBind(0, 0, f"other-{at}", at * HOUR),)))
        for at, job in enumerate(recorded.jobs)
    ]
    others[1] = replace(others[1], gaps=(RecordGap.RESTARTED,))
    found = results.trust(replace(recorded, jobs=tuple(others)), outcome.histories)
    assert found is not None
    assert (found.binds, found.equal_binds, found.differing.jobs) == (3, 0, 3)
    assert [one.causes for one in found.differing.listed] == [("moment",), ("restarted",), ("after",)]
    assert found.differing.listed[0].recorded == "other-0"


def test_decisions_do_not_depend_on_explanations(monkeypatch: Any) -> None:
    workload = synthetic.workload(SyntheticSize(jobs=30, nodes=2, load=1.8, period=4 * HOUR))
    text = DEFAULT_POLICY_TEXT.replace("allocate, backfill", "allocate, preempt, reclaim, backfill")
    first = simulated_run.run(workload, parse(text))
    monkeypatch.setattr(simulated_run, "UnexplainedSession", Session)
    assert simulated_run.run(workload, parse(text)).digest == first.digest
