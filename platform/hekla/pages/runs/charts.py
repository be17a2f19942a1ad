"""The charts of runs, drawn only if they are chosen: curves, parallel coordinates, and a metric by a parameter."""

from collections.abc import Sequence
from typing import Any

from django.http import QueryDict

from hekla.apps.job_metrics.ranking import Ranking, Run
from hekla.pages.runs.curves import curves
from hekla.pages.runs.parallel import parallel
from hekla.pages.runs.scatter import scatter

CHARTS = ("curves", "parallel", "scatter", "none")
AXES = ("step", "time")


def context(runs: Sequence[Run], order: Ranking, names: Sequence[str], query: QueryDict) -> dict[str, Any]:
    """The charts of the best of these runs. `names`: the parameters that differ.

    `chart` in the query: one of `CHARTS`, else curves and parallel coordinates; `x`: the axis of curves; `by`: the
    parameter of the scatter plot.
    """
    chart = query.get("chart", "") if query.get("chart") in CHARTS else ""
    axis = query.get("x", "") if query.get("x") in AXES else AXES[0]
    by = query.get("by", "") if query.get("by") in names else next(iter(names), "")
    return {
        "chart": chart,
        "axis": axis,
        "by": by,
        "parameters": names,
        "curves": curves(runs, order, names, axis) if chart in {"", "curves"} else None,
        "parallel": parallel(runs, names, order) if chart in {"", "parallel"} else None,
        "scatter": scatter(runs, order, by) if chart == "scatter" and by else None,
    }
