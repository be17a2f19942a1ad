"""Signs that a pod makes no progress: of those that make none, and not of those that are merely quiet."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hekla.domain.metric_series import MetricSeries
from hekla.domain.stalls import LogGrowth, MetricProgress, PodActivity, Stall, StallSign, find_stalls

BEGIN = datetime(2026, 11, 20, 8, tzinfo=UTC)
NOW = BEGIN + timedelta(hours=2)
QUIET = timedelta(minutes=15)


def progress(seconds: float = 7200, **facts: Any) -> MetricProgress:
    usual = {"metric": "loss", "count": 100, "step": 1000.0, "seconds": seconds, "longest": 20.0, "pace": 1.0}
    return MetricProgress(**{**usual, **facts})


def pod(number: int = 1, **facts: Any) -> PodActivity:
    return PodActivity(**{"pod": number, "job": 1, "task": "worker", "started_at": BEGIN, "read_at": NOW, **facts})


def grown(minutes_ago: float, *, count: int = 20, longest: float = 60) -> LogGrowth:
    return LogGrowth(NOW - timedelta(minutes=minutes_ago), count, longest, NOW)


def signs(*pods: PodActivity) -> list[tuple[int, StallSign]]:
    return [(one.pod, one.sign) for one in find_stalls(pods, quiet=QUIET, now=NOW)]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"progress": progress(6000)}, StallSign.NO_METRICS),
        ({"progress": progress(7000)}, None),
        ({"progress": progress(6000, longest=600.0)}, None),  # its pauses are long
        ({"progress": progress(6000, count=4)}, None),  # it prints few metrics
        ({"progress": progress(6000), "read_at": BEGIN + timedelta(seconds=6100)}, None),  # nobody has read on
        ({"progress": None}, None),
        ({"log": grown(31)}, StallSign.SILENT_LOG),
        ({"log": grown(29)}, None),
        ({"log": grown(31, longest=1200)}, None),
        ({"log": grown(31, count=4)}, None),
        ({"unused_since": NOW - timedelta(minutes=16)}, StallSign.UNUSED_GPUS),
        ({"unused_since": NOW - timedelta(minutes=14)}, None),
    ],
)
def test_sign_of_one_pod(facts: dict[str, Any], expected: StallSign | None) -> None:
    assert signs(pod(**facts)) == ([(1, expected)] if expected else [])


def test_the_slow_one_of_a_task_is_named_with_the_figures_of_both() -> None:
    slow = progress(step=4000.0, pace=0.5)
    others = [pod(number, progress=progress(step=7200.0)) for number in (2, 3)]
    found = find_stalls([pod(progress=slow), *others], quiet=QUIET, now=NOW)
    figures = {"metric": "loss", "step": 4000.0, "pace": 0.5, "other_step": 7200.0, "other_pace": 1.0}
    assert found == [Stall(1, StallSign.SLOW_REPLICA, NOW - timedelta(seconds=6400), figures)]


@pytest.mark.parametrize(
    "facts",
    [
        {"step": 7100.0, "pace": 0.5},  # hardly behind
        {"step": 4000.0, "pace": 0.8},  # catches up, or started later
        {"step": 4000.0, "pace": 0.5, "metric": "accuracy"},  # it counts something else
    ],
)
def test_no_pod_is_slow_that_cannot_be_compared(facts: dict[str, Any]) -> None:
    assert signs(pod(progress=progress(**facts)), pod(2, progress=progress(step=7200.0))) == []


def test_a_pod_that_stopped_is_not_called_slow() -> None:
    stopped, other = progress(3000, step=3000.0, pace=0.1), progress(step=7200.0)
    assert signs(pod(progress=stopped), pod(2, progress=other)) == [(1, StallSign.NO_METRICS)]


def test_progress_of_curves() -> None:
    loss, rare = MetricSeries(), MetricSeries()
    for step in range(1000):
        loss.add(step, 1.0, 2.0 * step if step < 900 else 1800.0 + 4 * (step - 900))
    rare.add(5, 0.5, 2500.0)
    found = MetricProgress.of({"loss": loss, "accuracy": rare})
    assert found is not None
    assert (found.metric, found.count, found.step, found.seconds) == ("loss", 1000, 999.0, 2500.0)
    assert found.pace is not None
    assert 0.25 <= found.pace < 0.5
    assert 4 <= found.longest < 80  # of stored points only
    assert MetricProgress.stored(found.document()) == found


def test_no_progress_without_times() -> None:
    unknown = MetricSeries()
    unknown.add(1, 2.0)
    assert MetricProgress.of({"loss": unknown}) is None
    assert MetricProgress.stored({}) is None


def test_steps_and_times_that_a_program_invents_break_no_judgement() -> None:
    wild = MetricSeries()
    for step in (-1.7e308, 1.7e308, -1.7e308, 1.7e308, -1.7e308):
        wild.add(step, 1.0, 1e300)
        wild.add(-step, 1.0, 0.1)
    found = MetricProgress.of({"loss": wild})
    assert found is not None
    json.dumps(found.document(), allow_nan=False)
    far = [progress(step=step, seconds=found.seconds, pace=pace) for step, pace in ((1.7e308, 1.0), (1e15, 1e-300))]
    slow = progress(step=-1.7e308, pace=-1.7e308, longest=found.longest)
    for others in (far, far[:1], far[1:]):
        pods = [pod(progress=slow), pod(2, progress=found), *(pod(3 + n, progress=one) for n, one in enumerate(others))]
        for stall in find_stalls(pods, quiet=QUIET, now=NOW):
            json.dumps(dict(stall.figures), allow_nan=False)
    stored = [MetricProgress.stored({**found.document(), "step": int(step), "pace": 1}) for step in (1.7e308, -1.7e308)]
    assert signs(*(pod(number, progress=one) for number, one in enumerate(stored))) == []
    wild.add(10**308, 1.0, 5.0)
    wild.add(-(10**308), 1.0, 5.0)
    assert MetricProgress.of({"loss": wild})
    ahead = pod(progress=progress(step=1e300, pace=1e-9))
    assert signs(ahead, pod(2, progress=progress())) == []
