"""Metrics in logs: hostile text, thinning, and reading in parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hekla.domain.metric_lines import MAX_NAMES, MAX_POINTS, MetricSeries, collect, curve, metric_lines


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("::metric step=3 loss=0.5", [(3.0, {"loss": 0.5})]),
        ("::metric loss=1e-3 val.acc=+2", [(None, {"loss": 0.001, "val.acc": 2.0})]),
        ("::metric loss=1\r", [(None, {"loss": 1.0})]),
        ("::metric step=3", []),
        ("::metric loss=1e999", []),
        ("::metric loss=nan", []),
        ("::metric loss=--1 acc=1", [(None, {"acc": 1.0})]),
        ("::metric", []),
        (" ::metric loss=1", []),
        ("::metric loss=1 and more", []),
        ("::metric\nloss=1", []),
        (f"::metric {'x' * 60}=1", []),
    ],
)
def test_lines_are_parsed(line: str, expected: list[tuple[float | None, dict[str, float]]]) -> None:
    assert list(metric_lines(f"noise\n{line}\nnoise")) == expected


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3 * MAX_POINTS), st.integers(1, 50))
def test_a_series_is_bounded_and_survives_being_stored(values: list[float], pause: int) -> None:
    series = MetricSeries()
    for number, value in enumerate(values):
        series.add(None, value)
        if number % pause == 0:
            series = MetricSeries.restored(series.summary(), series.points())
    assert series.summary() == {"last": values[-1], "min": min(values), "max": max(values), "count": len(values)}
    steps, drawn = curve(series.summary(), series.points())
    assert len(drawn) <= MAX_POINTS + 1
    assert (steps[0], drawn[0]) == (0, values[0])
    assert (steps[-1], drawn[-1]) == (len(values) - 1, values[-1])
    assert steps == sorted(set(steps))


def test_the_number_of_names_is_bounded() -> None:
    series: dict[str, MetricSeries] = {}
    assert collect(series, "\n".join(f"::metric m{n}=1" for n in range(2 * MAX_NAMES)))
    assert len(series) == MAX_NAMES
    assert not collect(series, "::metric other=1")
