"""The curves of one metric of several jobs, in one plot."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hekla.apps.job_metrics import selectors
from hekla.apps.job_metrics.ranking import Ranking, Run, best_run, describe
from hekla.domain.metric_series import MetricPoint, curve
from hekla.pages.frame import plots
from hekla.pages.runs.plain_text import plain

MOST_LINES = 50
_MOST_KEYS = 12
"""With more lines, only the pointer tells them apart."""
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_COLOURS = 7
"""Plots have so many colours; further lines are dashed."""
_MINUTE, _HOUR = 60, 3600
_LAST_EXACT = 2**53
_LAST_PLAIN = 10**7
"""Whole numbers below it have seven digits at most."""
_IN_MINUTES, _IN_HOURS = 5 * _MINUTE, 5 * _HOUR


@dataclass(frozen=True, slots=True)
class Curves:
    """A plot of the best runs. `count`: its lines; `total`: the runs with the metric."""

    figure: SafeString
    count: int
    total: int


def curves(runs: Sequence[Run], order: Ranking, names: Sequence[str], axis: str = "step") -> Curves | None:
    """The curves of the best fifty of these runs; None if no run has two values of the metric.

    `names`: the parameters that tell the lines apart; `axis`: `step`, or `time` since the start of each pod.
    """
    with_metric = sorted((run for run in runs if order.metric in run.metrics), key=order.key)
    drawn = with_metric[:MOST_LINES]
    if not any(run.metrics[order.metric]["count"] > 1 for run in drawn):
        return None
    stored = selectors.points_of([run.job.pk for run in drawn], order.metric)
    best, traces = best_run(drawn, order), list[dict[str, Any]]()
    title, unit = _axis(axis, stored.values())
    for number, run in enumerate(drawn):
        if run.job.pk in stored:
            name = plain(describe(run, names) or run.job.name)
            trace = {**_stored_line(stored[run.job.pk], axis, unit), "name": name}
            line = {"width": 3.5 if run is best else 1.5, "dash": _DASHES[number // _COLOURS % len(_DASHES)]}
            hover = "%{meta}<br>%{fullData.name}<br>%{x}: %{y:.4g}<extra></extra>"
            traces.append(trace | {"meta": plain(run.job.name), "hovertemplate": hover, "line": line})
    figure = plots.json_of(
        traces,
        hovermode="closest",
        legend={"orientation": "h", "y": -0.3},
        showlegend=len(traces) <= _MOST_KEYS,
        xaxis={"title": axis_title(title)},
    )
    return Curves(figure, len(drawn), len(with_metric))


def line_of(points: Sequence[MetricPoint], name: str) -> dict[str, Any]:
    """A line of a figure, by step."""
    return {**_line(points), "name": name}


@lru_cache(maxsize=256)
def _stored_line(points: str, axis: str, unit: float) -> dict[str, Any]:
    """The line of points that are stored as this JSON. Cached, since most curves stay as they are between two looks."""
    return _line(_curve(points), axis, unit)


def _curve(points: str) -> Sequence[MetricPoint]:
    return curve(orjson.loads(points))


def _line(points: Sequence[MetricPoint], axis: str = "step", unit: float = 1.0) -> dict[str, Any]:
    """A line without its name. Points without a time are left out of the axis of time."""
    if axis == "time":
        pairs = [(point.seconds / unit, point.value) for point in points if point.seconds is not None]
    else:
        pairs = [(step, value) for step, value, _seconds in points]
    return {
        "type": "scatter",
        "x": _numbers([x for x, _y in pairs]),
        "y": _numbers([y for _x, y in pairs]),
        "mode": "lines" if len(pairs) > 1 else "markers",
    }


def axis_title(text: str) -> dict[str, Any]:
    """The title of an axis, in the size of its numbers."""
    return {"text": text, "font": {"size": 12}, "standoff": 6}


def _axis(axis: str, stored: Iterable[str]) -> tuple[str, float]:
    """The title of the axis, and the seconds of its unit."""
    if axis != "time":
        return _("step"), 1.0
    points = (one for json in stored for one in _curve(json))
    longest = max((one.seconds for one in points if one.seconds is not None), default=0.0)
    if longest < _IN_MINUTES:
        return _("seconds since the start"), 1.0
    return (_("minutes since the start"), _MINUTE) if longest < _IN_HOURS else (_("hours since the start"), _HOUR)


def _numbers(numbers: Sequence[float]) -> orjson.Fragment | list[float]:
    """As `short`, of many numbers, as JSON: a plot of fifty curves has twenty thousand."""
    if max(map(abs, numbers), default=0.0) >= _LAST_PLAIN:
        return list(map(short, numbers))
    return orjson.Fragment(f"[{','.join([f'{number:.7g}' for number in numbers])}]")


def short(number: float) -> float:
    """Exact enough to draw: whole numbers as such, others with seven digits.

    PostgreSQL returns some as int, also those beyond the 64 bits that a figure can have.
    """
    is_whole = abs(number) < _LAST_EXACT and float(number).is_integer()
    return int(number) if is_whole else float(f"{number:.7g}")
