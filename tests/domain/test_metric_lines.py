"""Metrics in logs: hostile text, curves that keep every peak, and reading in parts."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hekla.domain.metric_lines import MAX_NAMES, collect, metric_lines
from hekla.domain.metric_series import MAX_POINTS, MetricSeries, curve

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3 * MAX_POINTS)


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
        ("::metric löss=1", []),
    ],
)
def test_lines_are_parsed(line: str, expected: list[tuple[float | None, dict[str, float]]]) -> None:
    data = f"nöise\n{line}\nnoise".encode()
    assert [found[1:] for found in metric_lines(data)] == expected
    assert all(place == len("nöise\n".encode()) for place, *_rest in metric_lines(data))


def stored(series: MetricSeries) -> MetricSeries:
    summary, points = json.loads(json.dumps([series.summary(), series.points()]))
    return MetricSeries.restored(summary, points)


@given(VALUES, st.integers(1, 50))
def test_a_series_is_bounded_and_survives_being_stored(values: list[float], pause: int) -> None:
    series = MetricSeries()
    for number, value in enumerate(values):
        series.add(None, value, float(number))
        if number % pause == 0:
            series = stored(series)
    summary = series.summary()
    assert {name: summary[name] for name in ("last", "min", "max", "count")} == {
        "last": values[-1], "min": min(values), "max": max(values), "count": len(values),
    }  # fmt: skip
    places = {"last": len(values) - 1, "min": values.index(min(values)), "max": values.index(max(values))}
    assert {name: summary[f"{name}_step"] for name in places} == places
    drawn = curve(series.points())
    assert len(drawn) <= MAX_POINTS
    assert (drawn[0].step, drawn[-1].step) == (0, len(values) - 1)
    assert all(values[int(point.step)] == point.value and point.seconds == point.step for point in drawn)
    steps = [point.step for point in drawn]
    assert steps == sorted(set(steps))


@given(VALUES)
def test_a_curve_has_the_extremes_of_each_stretch(values: list[float]) -> None:
    series = MetricSeries()
    for value in values:
        series.add(None, value)
    drawn = {int(point.step): point.value for point in curve(series.points())}
    for begin in range(0, len(values), series.every):
        stretch = range(begin, min(begin + series.every, len(values)))
        of_curve = [drawn[step] for step in stretch if step in drawn]
        all_values = [values[step] for step in stretch]
        assert (min(of_curve), max(of_curve)) == (min(all_values), max(all_values))


@given(st.integers(0, 2**32), st.integers(1, 1500), st.integers(1, 12))
def test_parts_of_a_log_give_the_same_as_the_whole(seed: int, count: int, parts: int) -> None:
    """With random borders between lines, and a restart at each of them."""
    chance = random.Random(seed)
    lines = [f"::metric loss={chance.random()} acc={chance.random()}\n".encode() for _ in range(count)]
    whole: dict[str, MetricSeries] = {}
    collect(whole, b"".join(lines))
    read: dict[str, MetricSeries] = {}
    borders = sorted(chance.randrange(count + 1) for _ in range(parts))
    for begin, end in zip([0, *borders], [*borders, count], strict=True):
        collect(read, b"".join(lines[begin:end]))
        read = {name: stored(one) for name, one in read.items()}
    as_data = [{name: (one.summary(), one.points()) for name, one in each.items()} for each in (whole, read)]
    assert as_data[0] == as_data[1]


def test_the_number_of_names_is_bounded() -> None:
    series: dict[str, MetricSeries] = {}
    assert collect(series, "\n".join(f"::metric m{n}=1" for n in range(2 * MAX_NAMES)).encode())
    assert len(series) == MAX_NAMES
    assert not collect(series, b"::metric other=1")
