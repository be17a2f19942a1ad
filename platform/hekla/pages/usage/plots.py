"""Resource usage as Plotly figures, and as a table for people who cannot use plots."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hekla.apps.job_history import labels
from hekla.apps.usage.selectors import UsagePoint
from hekla.domain.cards import MEMORY
from hekla.domain.resources import Resources
from hekla.pages.frame import plots

_MIB = 2**20
_SIZES = (("TiB", 2**40), ("GiB", 2**30), ("MiB", _MIB))
Value = Callable[[UsagePoint], float | None]


@dataclass(frozen=True, slots=True)
class UsagePlot:
    """One figure. `title` contains the unit; `json`: the figure for the page's script."""

    title: str
    json: SafeString


@dataclass(frozen=True, slots=True)
class UsageRow:
    """The usage of one line in words; `requested`: its request."""

    line: str
    mean_cpu: str
    most_cpu: str
    most_memory: str
    most_gpus: str
    requested: str


def pictures(points: Sequence[UsagePoint], requested: Mapping[str, Resources]) -> list[UsagePlot]:
    """Figures of CPU, memory, and GPUs if they were measured. `requested`: the request of each line.

    Empty if no line has two points: then the table has all of it.
    """
    if not any(len(some) > 1 for some in _by_line(points).values()):
        return []
    unit, size = _size(max(point.memory_bytes for point in points))
    found = [
        _picture(_("CPU (cores)"), points, lambda point: point.cores, _same(requested, "cpu", 1000)),
        _picture(
            _("Memory (%s)") % unit, points, lambda point: point.memory_bytes / size, _same(requested, "memory", size)
        ),
    ]
    return found + _gpu_pictures(points, requested)


def _gpu_pictures(points: Sequence[UsagePoint], requested: Mapping[str, Resources]) -> list[UsagePlot]:
    found = []
    if any(point.gpus is not None for point in points):
        wanted = _same(requested, "nvidia.com/gpu", 1000)
        found.append(_picture(_("Busy GPUs"), points, lambda point: point.gpus, wanted))
    held = [point.gpu_memory_bytes for point in points if point.gpu_memory_bytes is not None]
    if held:
        unit, size = _size(max(held))
        value: Value = lambda point: None if point.gpu_memory_bytes is None else point.gpu_memory_bytes / size  # noqa: E731
        parts = _same(requested, MEMORY, 1000 * size / _MIB)
        found.append(_picture(_("GPU memory (%s)") % unit, points, value, parts))
    return found


def rows(points: Sequence[UsagePoint], requested: Mapping[str, Resources]) -> list[UsageRow]:
    """A table row for each line."""
    return [_row(line, some, requested.get(line, Resources())) for line, some in _by_line(points).items()]


def _row(line: str, points: Sequence[UsagePoint], requested: Resources) -> UsageRow:
    cores = [point.cores for point in points if point.cores is not None]
    gpus = [point.gpus for point in points if point.gpus is not None]
    unit, size = _size(most := max(point.memory_bytes for point in points))
    return UsageRow(
        line=line,
        mean_cpu=f"{sum(cores) / len(cores):.2f}" if cores else "–",
        most_cpu=f"{max(cores):.2f}" if cores else "–",
        most_memory=f"{most / size:.3g} {unit}",
        most_gpus=f"{max(gpus):.2f}" if gpus else "–",
        requested=labels.amounts(requested),
    )


def _picture(title: str, points: Sequence[UsagePoint], value: Value, requested: float | None) -> UsagePlot:
    lines: list[dict[str, Any]] = []
    for line, some in _by_line(points).items():
        values = [_rounded(value(point)) for point in some]
        is_line = sum(one is not None for one in values) > 1  # the first sample of a pod has no CPU rate
        mode = "lines" if is_line else "markers"
        lines.append({"type": "scatter", "mode": mode, "name": line, "x": [_instant(one) for one in some], "y": values})
    if requested is not None:
        ends = [min(line["x"][0] for line in lines), max(line["x"][-1] for line in lines)]
        dashes = {"dash": "dash", "width": 1.5}
        level = {"type": "scatter", "mode": "lines", "name": _("requested"), "x": ends, "y": [requested, requested]}
        lines.append({**level, "line": dashes})
    axes = {"xaxis": {"type": "date"}, "yaxis": {"rangemode": "tozero"}}
    legend = {"orientation": "h", "y": -0.2}
    return UsagePlot(title, plots.json_of(lines, **axes, legend=legend, showlegend=len(lines) > 1))


def _instant(point: UsagePoint) -> str:
    return point.at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _by_line(points: Sequence[UsagePoint]) -> dict[str, list[UsagePoint]]:
    found: dict[str, list[UsagePoint]] = {}
    for point in points:
        found.setdefault(point.line, []).append(point)
    return found


def _same(requested: Mapping[str, Resources], name: str, size: float) -> float | None:
    """The request of one line, in units of `size`, if all lines request the same; else None."""
    amounts = {resources.amount(name) for resources in requested.values()}
    return amounts.pop() / size if len(amounts) == 1 and any(amounts) else None


def _size(most: int) -> tuple[str, int]:
    return next((unit, size) for unit, size in _SIZES if most >= size or size == _SIZES[-1][1])


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
