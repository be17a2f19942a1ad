"""Plots: Plotly figures built on the server, with a light and a dark template.

`to_json` returns the JSON that `js/plots.js` passes to `Plotly.react`. Plotly is imported with the first figure,
because its import takes a quarter of a second and 23 MB. The script comes from Plotly's wheel.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.contrib.staticfiles.finders import FileSystemFinder
from django.core.files.storage import FileSystemStorage
from django.utils.safestring import SafeString, mark_safe

from hekla.lib.text import show_bidi_controls

if TYPE_CHECKING:
    import plotly.graph_objects as go

SCRIPT = "plotly.min.js"
PREFIX = "plotly"
_FONT = (
    'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Helvetica Neue", "Noto Sans SC", '
    '"Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif'
)


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours of one theme: the tokens --plot-1 to --plot-7, --line and --muted of css/variables.css."""

    lines: tuple[str, ...]
    grid: str
    text: str


THEMES = {
    "light": Theme(
        lines=("#0072b2", "#d55e00", "#009e73", "#a8588a", "#b07d00", "#56b4e9", "#444444"),
        grid="#dcdcd6",
        text="#5c6068",
    ),
    "dark": Theme(
        lines=("#56b4e9", "#e69f00", "#2fc79a", "#cc79a7", "#f0e442", "#8ab6d6", "#cccccc"),
        grid="#343943",
        text="#a3a9b4",
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
    text = f'{{"figure":{plotly.io.to_json(figure, engine="orjson")},"templates":{_register_templates()}}}'
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
    return go.layout.Template(
        layout={
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": theme.lines,
            "font": {"family": _FONT, "size": 12, "color": theme.text},
            "margin": {"l": 48, "r": 12, "t": 12, "b": 40},
            "xaxis": {**axis, "ticks": "outside", "ticklen": 6, "tickcolor": theme.grid},
            "yaxis": axis,
        }
    )


class PlotlyFinder(FileSystemFinder):
    """Finds `plotly/plotly.min.js`, and no other file, in the installed package; Plotly is not imported."""

    def __init__(self, *_args: object, **_options: object) -> None:
        spec = find_spec("plotly")
        assert spec is not None, "plotly is a dependency"  # noqa: S101
        assert spec.origin is not None  # noqa: S101
        root = str(Path(spec.origin).parent / "package_data")
        storage = FileSystemStorage(location=root)
        storage.prefix = PREFIX  # type: ignore[attr-defined]  # as FileSystemFinder does
        self.locations = [(PREFIX, root)]
        self.storages = {root: storage}

    def check(self, **_options: object) -> list[Any]:
        """No checks: no setting names the folder."""
        return []

    def find_location(self, root: str, path: str, prefix: str | None = None) -> str | None:
        """The path of the file if `path` is the script's, else None."""
        return super().find_location(root, path, prefix) if path == f"{PREFIX}/{SCRIPT}" else None

    def list(self, _ignore_patterns: object) -> Iterator[tuple[str, FileSystemStorage]]:
        """The script only."""
        for storage in self.storages.values():
            yield SCRIPT, storage
