"""The metrics of simulated pods: curves that a variable of their task describes."""

import pytest

from hekla.backends.base import PodKey, PodOrder, StartRefused
from hekla.backends.simulated.config import SimulatedConfig
from hekla.backends.simulated.pod_plan import PodPlan, plan_pod
from hekla.domain import metric_lines

NOTHING = "This pod is simulated: nothing runs on gpu-0."


def plan(metrics: str, **env: str) -> PodPlan:
    key = PodKey("0" * 32, "worker", 0, 1)
    variables = {"HEKLA_SIM_SECONDS": "100", "HEKLA_SIM_METRICS": metrics, **env}
    return plan_pod(PodOrder(key, "gpu-0", ("train",), "", env=variables), SimulatedConfig(speed=1), at=1000.0)


def last_loss(metrics: str) -> float:
    *_, (_place, _step, values) = metric_lines.metric_lines(plan(metrics).log(2000.0).encode())
    return values["loss"]


def test_log_has_the_metrics_up_to_now() -> None:
    pod = plan("loss=2.4..0.4 accuracy=0.1..0.9")
    half = [found[1:] for found in metric_lines.metric_lines(pod.log(pod.runs_at + 50).encode())]
    whole = [found[1:] for found in metric_lines.metric_lines(pod.log(2000.0).encode())]
    assert whole[: len(half)] == half
    assert len(half) == pytest.approx(len(whole) / 2, abs=1)
    assert NOTHING in pod.log(2000.0).splitlines()[0]
    steps = [step for step, _ in whole]
    assert steps == sorted(steps)
    assert whole[-1][1]["loss"] == pytest.approx(0.4, abs=0.1)
    assert whole[-1][1]["accuracy"] == pytest.approx(0.9, abs=0.05)


def test_pod_that_fails_early_prints_no_later_metrics() -> None:
    pod = plan("loss=2.4..0.4")
    stopped = pod.stopped(pod.runs_at + 30, 0.0, "stopped by a person")
    assert len(list(metric_lines.metric_lines(stopped.log(2000.0).encode()))) < 15


def test_further_from_the_best_parameter_is_worse() -> None:
    losses = [last_loss(f"loss=2.4..0.4 rate={rate}/0.001") for rate in ("0.001", "0.003", "0.01", "0.1")]
    assert losses == sorted(losses)
    assert losses[-1] > 1.5


@pytest.mark.parametrize(
    "metrics",
    ["loss", "loss=1..x", "loss=1..2 rate=0/1", "x=1..2 " * 30, "loss=1..2;", "loss=1..2".rjust(501)],
)
def test_invalid_metrics_are_refused(metrics: str) -> None:
    with pytest.raises(StartRefused, match="HEKLA_SIM_METRICS"):
        plan(metrics)
