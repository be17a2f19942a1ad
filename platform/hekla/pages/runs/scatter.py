"""A metric against one parameter, a point for each job."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString

from hekla.apps.job_metrics.ranking import Ranking, Run
from hekla.pages.frame import plots
from hekla.pages.runs.curves import axis_title, short
from hekla.pages.runs.parallel import number_of, spans_magnitudes
from hekla.pages.runs.plain_text import plain

MOST_POINTS = 1_000


@dataclass(frozen=True, slots=True)
class Scatter:
    """A plot of the best runs. `count`: its points; `total`: the runs with the metric."""

    figure: SafeString
    count: int
    total: int


def scatter(runs: Sequence[Run], order: Ranking, name: str) -> Scatter | None:
    """The best thousand of these runs by this parameter; None if no run has the metric.

    The axis has the numbers of the parameter, in logarithms if they span two orders of magnitude; words in their order.
    """
    with_metric = sorted((run for run in runs if order.metric in run.metrics), key=order.key)
    drawn = with_metric[:MOST_POINTS]
    if not drawn:
        return None
    words = [run.parameters.get(name, "") for run in drawn]
    numbers = [number for word in words if (number := number_of(word)) is not None]
    is_numeric = len(numbers) == len(words)
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": numbers if is_numeric else list(map(plain, words)),
        "y": [short(run.metrics[order.metric][order.value]) for run in drawn],
        "text": [plain(run.job.name) for run in drawn],
        "hovertemplate": "%{text}<br>%{x}: %{y:.4g}<extra></extra>",
        "marker": {"size": 9},
    }
    kind = "category" if not is_numeric else "log" if spans_magnitudes(numbers) else "linear"
    titles = {
        "xaxis": {"type": kind, "title": axis_title(plain(name))},
        "yaxis": {"title": axis_title(plain(order.metric))},
    }
    return Scatter(plots.json_of([trace], hovermode="closest", **titles), len(drawn), len(with_metric))
