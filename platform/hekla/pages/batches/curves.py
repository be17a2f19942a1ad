"""The curves of one metric of several jobs of a batch, in one plot."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from django.utils.safestring import SafeString

from hekla.apps.batches import selectors
from hekla.apps.batches.ranking import Ranking, Run, best_run, describe
from hekla.domain.metric_lines import curve
from hekla.lib.text import truncate
from hekla.pages.frame import plots

MOST_LINES = 12
_MOST_NAME = 60
_DASHES = ("solid", "dash")
_COLOURS = 7
"""Plots have so many colours; further lines are dashed."""


@dataclass(frozen=True, slots=True)
class Curves:
    """A plot of the best runs. `count`: its lines; `total`: the runs with the metric."""

    figure: SafeString
    count: int
    total: int


def curves(runs: Sequence[Run], order: Ranking, names: Sequence[str]) -> Curves | None:
    """The curves of the best twelve of these runs; None if no run has two values of the metric.

    `names`: the parameters that tell the lines apart.
    """
    with_metric = sorted((run for run in runs if order.metric in run.metrics), key=order.key)
    drawn = with_metric[:MOST_LINES]
    if not any(run.metrics[order.metric]["count"] > 1 for run in drawn):
        return None
    points = selectors.metric_points([run.member.pk for run in drawn], order.metric)
    best, traces = best_run(drawn, order), list[dict[str, Any]]()
    for number, run in enumerate(drawn):
        if run.member.pk not in points:
            continue
        steps, values = curve(*points[run.member.pk])
        line = {"width": 3.5 if run is best else 1.5, "dash": _DASHES[number // _COLOURS]}
        traces.append(
            {
                "type": "scatter",
                "x": steps,
                "y": values,
                "mode": "lines" if len(values) > 1 else "markers",
                "name": _plain(describe(run, names) or run.member.job.name),
                "meta": _plain(run.member.job.name),
                "hovertemplate": "%{meta}<br>%{fullData.name}<br>%{x}: %{y:.4g}<extra></extra>",
                "line": line,
            }
        )
    figure = plots.json_of(traces, hovermode="closest", legend={"orientation": "h", "y": -0.12}, showlegend=True)
    return Curves(figure, len(drawn), len(with_metric))


def _plain(words: str) -> str:
    """Text that Plotly shows as it is: it reads tags, and people name their parameters."""
    return escape(truncate(words, _MOST_NAME), quote=False)
