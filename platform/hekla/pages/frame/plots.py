"""Plots: Plotly figures built on the server, with a light and a dark template.

`to_json` returns the JSON that `js/plots.js` passes to `Plotly.react`. Plotly is imported with the first figure,
because its import takes a quarter of a second and 23 MB. The script is
`static/vendor/plotly-basic.min.js`: Plotly's own bundle of lines, bars and pies, a quarter of the whole library.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from django.utils.safestring import SafeString, mark_safe

from hekla.lib.text import show_bidi_controls

if TYPE_CHECKING:
    import plotly.graph_objects as go

_FONT = (
    '"Public Sans", system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Helvetica Neue", "Noto Sans SC", '
    '"Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif'
)


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours of one theme: the tokens --plot-1 to --plot-7, --line, --muted and --surface of css/variables.css."""

    lines: tuple[str, ...]
    grid: str
    text: str
    surface: str


THEMES = {
    "light": Theme(
        lines=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#661100", "#332288", "#444444"),
        grid="#dcdcd6",
        text="#5c6068",
        surface="#ffffff",
    ),
    "dark": Theme(
        lines=("#56b4e9", "#e69f00", "#4f7cd8", "#d55e00", "#ffd6a5", "#8f8f8f", "#cccccc"),
        grid="#343943",
        text="#a3a9b4",
        surface="#1c1f25",
    ),
}


def new_figure(**layout: object) -> "go.Figure":
    """An empty figure in Hekla's light template. `layout`: properties of Plotly's layout."""
    import plotly.graph_objects as go  # noqa: PLC0415  (slow and large, see above)

    _register_templates()
    return go.Figure(layout={"template": "hekla_light", **layout})


def to_json(figure: "go.Figure") -> SafeString:
    """`{"figure": {"data", "layout"}, "templates": {"light", "dark"}}`, safe inside a script element.

    Plotly draws its names, so bidirectional controls are shown.
    """
    import plotly.io  # noqa: PLC0415

    figure.layout.template = None  # the browser adds the template of its theme
    return _document(plotly.io.to_json(figure, engine="orjson"))


def json_of(traces: Sequence[Mapping[str, Any]], **layout: object) -> SafeString:
    """As `to_json`, of traces with these properties. Plotly checks none of them, which takes milliseconds for each."""
    import plotly.io  # noqa: PLC0415

    return _document(plotly.io.json.to_json_plotly({"data": traces, "layout": layout}, engine="orjson"))


def _document(figure: str) -> SafeString:
    text = f'{{"figure":{figure},"templates":{_register_templates()}}}'
    return mark_safe(show_bidi_controls(text))  # noqa: S308  (Plotly writes <, > and / as escapes)


@cache
def _register_templates() -> str:
    """Registers `hekla_light` and `hekla_dark` with Plotly, and returns them as JSON by theme."""
    import plotly.io  # noqa: PLC0415

    templates = {name: _template(theme) for name, theme in THEMES.items()}
    for name, template in templates.items():
        plotly.io.templates[f"hekla_{name}"] = template
    return str(plotly.io.json.to_json_plotly(templates, engine="orjson"))


def _template(theme: Theme) -> "go.layout.Template":
    import plotly.graph_objects as go  # noqa: PLC0415

    axis = {"gridcolor": theme.grid, "linecolor": theme.grid, "zerolinecolor": theme.grid, "automargin": True}
    crosshair = {
        "showspikes": True,
        "spikemode": "across",
        "spikethickness": 1,
        "spikedash": "solid",
        "spikecolor": theme.text,
    }
    return go.layout.Template(
        layout={
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": theme.lines,
            "font": {"family": _FONT, "size": 12, "color": theme.text},
            "margin": {"l": 48, "r": 12, "t": 12, "b": 40},
            "hovermode": "x unified",
            "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.grid},
            "xaxis": {**axis, **crosshair, "ticks": "outside", "ticklen": 6, "tickcolor": theme.grid},
            "yaxis": {**axis, "nticks": 6},
        }
    )
