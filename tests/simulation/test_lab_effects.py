"""Changes with a known effect: the lab shows the waits, use, evictions and fairness that follow by hand."""

import io
import json
from dataclasses import replace
from typing import Any

import pytest
from tests.simulation.test_lab_runs import EVICTING, week

from hekla.domain.resources import Resources
from hekla.engine.model import NodeSpec
from hekla.engine.policy import DEFAULT_POLICY_TEXT, parse
from hekla.simulation.lab import experiment, results, simulated_run, synthetic
from hekla.simulation.lab.change import changed, read_change
from hekla.simulation.lab.experiment import Experiment
from hekla.simulation.lab.importers import read_trace
from hekla.simulation.lab.workload import HOUR, Workload

NO_OVERCOMMIT = DEFAULT_POLICY_TEXT.replace("  - name: overcommit\n", "")
ADMITS_ALL = NO_OVERCOMMIT.replace("enqueue, ", "")
"""Shares are divided among all jobs, not only among those that were admitted so far."""


def philly(*jobs: tuple[str, float, float, int, int]) -> bytes:
    """A file in Philly's format: jobs by virtual cluster, hour of submission, hours, machines, and cards of each."""
    found = []
    for number, (vc, submitted, hours, machines, cards) in enumerate(jobs):
        detail = [{"ip": f"m{at}", "gpus": [f"gpu{card}" for card in range(cards)]} for at in range(machines)]
        attempt = {"start_time": _time(submitted), "end_time": _time(submitted + hours), "detail": detail}
        times = {"submitted_time": _time(submitted), "attempts": [attempt]}
        found.append({"status": "Pass", "vc": vc, "jobid": f"j{number}", "user": "ann", **times})
    return json.dumps(found).encode()


def _time(hours: float) -> str:
    seconds = round(hours * 3600)
    return f"2017-10-{2 + seconds // 86400:02} {seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def trace(*jobs: tuple[str, float, float, int, int], nodes: int = 1, cards: int = 8) -> Workload:
    size = Resources.parse({"cpu": str(cards), "pods": "110", "nvidia.com/gpu": str(cards)})
    return read_trace(io.BytesIO(philly(*jobs)), "philly", [NodeSpec(f"node-{at}", size) for at in range(nodes)])


def columns(workload: Workload, change: dict[str, Any], policy: str = DEFAULT_POLICY_TEXT) -> tuple[Any, Any]:
    """The figures without and with the change."""
    wanted = Experiment(workload, policy, read_change(change))
    runs = {name: experiment.finish(wanted, name) for name in experiment.columns(wanted)}
    found = experiment.report(wanted, runs)["columns"]
    return found["unchanged"], found["changed"]


def hours(column: Any, *keys: str) -> float:
    found = column
    for key in keys or ("total",):
        found = found[key]
    return float(found["wait_mean"]) / 3600


def test_half_the_nodes_let_jobs_queue() -> None:
    """A job an hour of one and a half hours: two nodes are used by three quarters, one is full from then on."""
    before, after = columns(trace(*[("a", at, 1.5, 1, 8) for at in range(11)], nodes=2), {"remove_nodes": ["node-1"]})
    assert hours(before) == 0
    assert hours(after) == pytest.approx(2.5, abs=0.01)  # 0, 0.5 … 5
    assert before["use"] == pytest.approx((10 * 1.5 - 0.5) / 20, abs=0.001)
    assert after["use"] == pytest.approx(1.0, abs=0.001)
    assert (before["total"]["slowdown"], before["makespan"]) == (1.0, pytest.approx(11.5, abs=0.01))
    assert after["makespan"] == pytest.approx(16.5, abs=0.01)


def test_twice_the_weight_gives_two_thirds() -> None:
    """24 jobs of each queue on 12 cards: 6 and 6 of them at a time; then 8 and 4, until the first queue is empty."""
    jobs = [(vc, 0.0, 1.0, 1, 1) for _ in range(24) for vc in ("a", "b")]
    before, after = columns(trace(*jobs, cards=12), {"queues": {"a": {"weight": 2}}}, ADMITS_ALL)
    assert [hours(before, "queues", name) for name in "ab"] == pytest.approx([1.5, 1.5], abs=0.01)
    assert [hours(after, "queues", name) for name in "ab"] == pytest.approx([1.0, 2.0], abs=0.01)
    assert before["fairness"] == pytest.approx(1.0)
    assert after["fairness"] == pytest.approx(25 / 26, abs=0.001)  # slowdowns 2 and 3
    assert before["total"]["evictions"] == after["total"]["evictions"] == 0


def test_without_the_gang_plugin_a_part_of_a_gang_starts() -> None:
    """A gang of two nodes waits for the second one, which stays free as long as gangs start as a whole."""
    jobs = ("a", 0.0, 1.0, 1, 8), ("a", 1 / 3600, 1.0, 2, 8), ("a", 0.5, 1.0, 1, 1)
    text = ADMITS_ALL.replace("  - name: gang\n", "")
    before, after = columns(trace(*jobs, nodes=2), {"policy": text}, ADMITS_ALL)
    assert before["use"] == pytest.approx(0.5, abs=0.01)
    assert after["use"] == pytest.approx(1.0, abs=0.01)


def test_with_eight_more_nodes_nothing_waits() -> None:
    workload = trace(*[(f"team-{at % 3}", 0.0, 1.0, 1, 8) for at in range(9)])
    before, after = columns(workload, {"nodes": [{"like": "node-0", "count": 8}]})
    assert (hours(before), hours(after)) == (pytest.approx(4.0, abs=0.01), 0)
    assert (before["makespan"], after["makespan"]) == (pytest.approx(9.0, abs=0.01), 1.0)
    assert (after["total"]["slowdown"], after["fairness"]) == (1.0, pytest.approx(1.0))


def test_more_nodes_of_one_kind_have_different_names() -> None:
    """As with a goal beside more nodes: both may be like the same node."""
    twice = {"nodes": [{"like": "node-0", "count": 2}, {"like": "node-0", "count": 1}]}
    names = [node.name for node in changed(trace(("a", 0.0, 1.0, 1, 8)), read_change(twice)).state.nodes]
    assert len(set(names)) == len(names) == 4


@pytest.mark.parametrize(("most", "count"), [(64, 4), (3, None)])
def test_capacity_planning_finds_the_smallest_number_of_nodes(most: int, count: int | None) -> None:
    """Nine jobs of an hour: on five nodes four of them wait for an hour, on four nodes one waits for two."""
    change = read_change({"goal": {"like": "node-0", "most": most, "wait_p90": 3601}})
    wanted = Experiment(trace(*[("a", 0.0, 1.0, 1, 8) for _ in range(9)]), DEFAULT_POLICY_TEXT, change)
    parts: list[float] = []
    runs = {name: experiment.finish(wanted, name, parts.append) for name in experiment.columns(wanted)}
    found = experiment.report(wanted, runs)["plan"]
    assert found["count"] == count
    waits = {one["count"]: round(one["wait_p90"] / 3600, 1) for one in found["trials"]}
    assert waits[most] == (0 if count else 1.2)
    assert len(waits) <= 8
    assert count is None or (waits[4], waits[3]) == (1.0, 1.2)
    assert 0 <= min(parts) <= max(parts) <= 1


def test_a_policy_that_preempts_starts_an_urgent_job_at_once() -> None:
    """Recorded without preemption: the urgent job waited for an hour. With it, one pod of the other begins again."""
    low = synthetic.job("low", 0, 2 * HOUR, pods=2, cards=4, tenant="slow")
    low = replace(low, group=replace(low.group, min_available=1, min_task_member={"worker": 1}))
    workload = week(low, synthetic.job("high", HOUR, HOUR, cards=4, priority=1000, tenant="urgent"))
    recorded = results.as_recorded(workload, simulated_run.run(workload, parse(NO_OVERCOMMIT)).histories)
    text = EVICTING.replace("{name: proportion}, ", "")
    before, after = columns(recorded, {"policy": text}, NO_OVERCOMMIT)
    assert (hours(before, "tenants", "urgent"), hours(after, "tenants", "urgent")) == (1.0, 0.0)
    assert (before["total"]["evictions"], after["total"]["evictions"]) == (0, 1)
    assert (before["makespan"], after["makespan"]) == (3.0, 4.0)
