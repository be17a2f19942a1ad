"""Runs of the policy lab: they repeat what they recorded, and changes have the effect that can be computed."""

import os
import time
from dataclasses import replace
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from hekla.domain.errors import Invalid
from hekla.engine.model import ClusterState, QueueSpec
from hekla.engine.policy import DEFAULT_POLICY_TEXT, parse
from hekla.simulation.lab import experiment, process, results, simulated_run, synthetic
from hekla.simulation.lab.change import changed, read_change
from hekla.simulation.lab.documents import read_workload, workload_document
from hekla.simulation.lab.experiment import Experiment, LabColumn
from hekla.simulation.lab.synthetic import SyntheticSize
from hekla.simulation.lab.workload import HOUR, SECOND, CapacityChange, Workload, WorkloadJob

EVICTING = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}, {name: binpack}]
"""
POLICY = parse(DEFAULT_POLICY_TEXT)


def week(*jobs: WorkloadJob, nodes: int = 1, queues: tuple[QueueSpec, ...] = (QueueSpec("queue-0"),)) -> Workload:
    return Workload(0, 100 * HOUR, ClusterState(synthetic.nodes(nodes), queues, ()), jobs)


def waits(workload: Workload, text: str = DEFAULT_POLICY_TEXT) -> list[float]:
    found = simulated_run.run(workload, parse(text)).histories
    return [(found[job.uid].started - job.submitted) / HOUR for job in workload.jobs]  # type: ignore[operator]


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(3), deadline=None)
def test_a_recorded_run_is_repeated_exactly(seed: int) -> None:
    text = Random(seed).choice((DEFAULT_POLICY_TEXT, EVICTING))
    size = SyntheticSize(jobs=25, nodes=2, load=1.5, period=4 * HOUR)
    wanted = synthetic.workload(size, seed)
    jobs = tuple(replace(job, group=replace(job.group, min_available=1, min_task_member={})) for job in wanted.jobs)
    first = simulated_run.run(replace(wanted, jobs=jobs), parse(text))
    recorded = results.as_recorded(replace(wanted, jobs=jobs), first.histories)
    again = simulated_run.run(recorded, parse(text))
    assert again.digest == first.digest
    found = results.trust(recorded, again.histories)
    assert found is not None
    assert found.equal_binds == found.binds > 0
    assert found.error_p90 == 0


def test_twice_the_nodes_halve_the_wait_of_a_saturated_queue() -> None:
    jobs = [synthetic.job(f"j{at}", 0, HOUR, cards=8) for at in range(40)]
    workload = week(*jobs)
    change = read_change({"nodes": [{"like": "node-0000", "count": 1}]})
    alone, together = waits(workload), waits(changed(workload, change))
    assert sum(alone) / len(alone) == 19.5
    assert sum(together) / len(together) == 9.5


def test_weights_of_three_to_one_give_three_quarters() -> None:
    queues = QueueSpec("queue-0"), QueueSpec("queue-1")
    jobs = [
        synthetic.job(f"j{at}", at * 8 * SECOND, HOUR, cards=2, queue=f"queue-{at % 2}", tenant=f"team-{at % 2}")
        for at in range(60)
    ]
    workload = changed(week(*jobs, queues=queues), read_change({"queues": {"queue-0": {"weight": 3}}}))
    found = simulated_run.run(workload, parse(EVICTING)).histories
    within = [job.group.queue for job in workload.jobs if HOUR / 2 < (found[job.uid].started or 0) < 9.5 * HOUR]
    assert within.count("queue-0") == 3 * within.count("queue-1") == 27


def test_a_preempted_pod_starts_again() -> None:
    low = synthetic.job("low", 0, 2 * HOUR, pods=2, cards=4)
    low = replace(low, group=replace(low.group, min_available=1, min_task_member={"worker": 1}))
    high = synthetic.job("high", HOUR, HOUR, cards=4, priority=1000)
    text = EVICTING.replace("{name: proportion}, ", "")  # which admits nothing to a full cluster
    found = simulated_run.run(week(low, high), parse(text)).histories
    assert found["high"].started == HOUR
    assert found["low"].evictions == 1
    assert found["low"].finished == 4 * HOUR


def test_the_next_attempt_of_a_pod_is_young() -> None:
    """Of two jobs with equal shares, the youngest pod is evicted: that of the second attempt, as on real clusters."""
    first, second = (synthetic.job(uid, at, 9 * HOUR, pods=2, cards=2) for uid, at in (("a", 0), ("b", HOUR // 2)))
    jobs = [replace(one, group=replace(one.group, min_available=1, min_task_member={})) for one in (first, second)]
    urgent = synthetic.job("urgent", 2 * HOUR, HOUR // 4, cards=2, priority=1000)
    filler = synthetic.job("filler", 0, 3 * HOUR // 2, cards=4)
    text = EVICTING.replace("{name: proportion}, ", "")  # which admits nothing to a full cluster
    workload = replace(week(jobs[0], filler, jobs[1], urgent), release=60 * SECOND)
    found = simulated_run.run(workload, parse(text)).histories
    assert (found["a"].evictions, found["b"].evictions) == (2, 0)


def test_pods_of_a_lost_node_start_elsewhere() -> None:
    job = synthetic.job("job", 0, 2 * HOUR, cards=8)
    workload = replace(week(job, nodes=2), changes=(CapacityChange(HOUR, "node-0000", None),))
    outcome = simulated_run.run(workload, POLICY)
    assert [one.node for one in outcome.histories["job"].binds][-1] == "node-0001"
    assert outcome.histories["job"].finished in (2 * HOUR, 3 * HOUR)


def test_a_run_that_breaks_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would report progress meanwhile, so the experiment would count as dead, and its error would be lost."""

    def finish(_one: Experiment, name: LabColumn, _report: Any) -> Any:
        if name is LabColumn.UNCHANGED:
            time.sleep(60)
        raise simulated_run.RunBroken("nothing fits")

    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(experiment, "finish", finish)
    wanted = Experiment(week(), DEFAULT_POLICY_TEXT, read_change({"remove_nodes": ["node-0000"]}))
    began = time.monotonic()
    with pytest.raises(simulated_run.RunBroken, match="nothing fits"):
        process.finish_all(wanted, lambda _part: None)
    assert time.monotonic() - began < 30


def test_one_run_reports_seldom() -> None:
    """Each report changes a row."""
    jobs = [synthetic.job(f"j{at}", at * HOUR, HOUR) for at in range(20)]
    reports: list[float] = []
    process.finish_all(Experiment(week(*jobs), DEFAULT_POLICY_TEXT, read_change({})), reports.append)
    assert len(reports) < 10


def test_removed_jobs_leave_and_endless_ones_stay() -> None:
    endless = replace(synthetic.job("endless", 0, HOUR, cards=8), runs=((None,),))
    impatient = replace(synthetic.job("impatient", 0, HOUR, cards=8), leaves=HOUR)
    outcome = simulated_run.run(week(endless, impatient), POLICY)
    summary = results.summary(week(endless, impatient), outcome.histories, 100 * HOUR)
    assert outcome.histories["impatient"].started is None
    assert (summary.total.jobs, summary.total.started, summary.total.finished) == (2, 1, 0)
    assert summary.use == pytest.approx(1.0)
    assert summary.total.wait_p90 == 0


def test_a_workload_as_a_document_gives_the_same_result() -> None:
    workload = synthetic.workload(SyntheticSize(jobs=30, nodes=2, load=1.5, period=4 * HOUR))
    recorded = results.as_recorded(workload, simulated_run.run(workload, POLICY).histories)
    recorded = replace(recorded, changes=(CapacityChange(HOUR, "more", synthetic.nodes(1, "more")[0]),))
    again = read_workload(orjson.loads(orjson.dumps(workload_document(recorded))))
    assert again == recorded
    one = Experiment(again, DEFAULT_POLICY_TEXT, read_change({"queues": {"queue-0": {"weight": 4}}}))
    runs = {name: experiment.finish(one, name) for name in experiment.columns(one)}
    found = experiment.report(one, runs)
    assert set(found["columns"]) == {"recorded", "unchanged", "changed"}
    assert found["columns"]["changed"]["total"]["finished"] == 30
    assert runs[LabColumn.UNCHANGED].trust is not None


@pytest.mark.parametrize(
    "data",
    [
        [],
        {"colour": 1},
        {"policy": 3},
        {"queues": {"a": {"weight": 0}}},
        {"queues": {"a": {"weight": True}}},
        {"queues": {"a": {"capability": {"cpu": "much"}}}},
        {"queues": {"a": []}},
        {"nodes": [{"like": "a"}]},
        {"nodes": [{"like": "a", "count": 10**9}]},
        {"remove_nodes": [1]},
    ],
)
def test_invalid_changes_are_refused(data: object) -> None:
    with pytest.raises(Invalid):
        read_change(data)


@pytest.mark.parametrize("data", [{"queues": {"x": {"weight": 2}}}, {"remove_nodes": ["x"]}])
def test_changes_of_unknown_things_are_refused(data: object) -> None:
    with pytest.raises(Invalid):
        changed(week(), read_change(data))


@pytest.mark.parametrize(("seed", "load", "replaced"), [(1, 0.6, "overcommit"), (2, 1.2, "gang"), (3, 1.0, "binpack")])
def test_one_cycle_that_admits_and_places_decides_as_two(
    seed: int, load: float, replaced: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = parse(DEFAULT_POLICY_TEXT.replace(f"  - name: {replaced}\n", ""))
    workload = synthetic.workload(SyntheticSize(jobs=25, nodes=2, load=load, period=8 * HOUR), seed)
    found = simulated_run.run(workload, policy)
    monkeypatch.setattr(simulated_run._Run, "_create_early", lambda _run: None)
    by_two = simulated_run.run(workload, policy)
    assert found.digest == by_two.digest
    assert found.cycles < by_two.cycles


def test_a_policy_that_places_before_it_admits_needs_two_cycles() -> None:
    """In one, the only job would wait for the next event, which never comes."""
    policy = parse(DEFAULT_POLICY_TEXT.replace('"enqueue, allocate, backfill"', '"allocate, backfill, enqueue"'))
    assert policy.actions[0] == "allocate"
    found = simulated_run.run(week(synthetic.job("job", 0, HOUR)), policy).histories
    assert found["job"].started == 0
