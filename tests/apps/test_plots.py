"""Figures of the plotly package, their JSON, and the version of its script."""

import json
import re
from pathlib import Path

import pytest

from hekla.pages.frame import plots

ROOT = Path(__file__).parents[2]


def decoded(figure) -> dict:
    return json.loads(plots.to_json(figure))


def test_figure_is_validated_and_has_a_template_for_each_theme():
    figure = plots.new_figure(xaxis_title_text="step", showlegend=True)
    figure.add_scatter(x=[1, 2], y=[0.5, None], mode="lines", name="train")
    written = decoded(figure)
    assert written["figure"]["layout"] == {"xaxis": {"title": {"text": "step"}}, "showlegend": True}
    assert written["figure"]["data"] == [
        {"type": "scatter", "mode": "lines", "name": "train", "x": [1, 2], "y": [0.5, None]}
    ]
    assert written["templates"].keys() == {"light", "dark"}
    with pytest.raises(ValueError, match="mode"):
        figure.add_scatter(mode="wavy")
    with pytest.raises(ValueError, match="colour"):
        plots.new_figure(colour="red")


def test_figure_json_cannot_close_its_script_element():
    evil = "</script><!--<script>&'\"\u2028"
    figure = plots.new_figure()
    figure.add_scatter(x=[1], y=[1], name=evil)
    text = plots.to_json(figure)
    assert "<" not in text
    assert decoded(figure)["figure"]["data"][0]["name"] == evil


def test_templates_are_registered_with_plotly():
    import plotly.io

    figure = plots.new_figure()
    assert tuple(figure.layout.template.layout.colorway) == plots.THEMES["light"].lines
    assert plotly.io.templates["hekla_dark"].layout.font.color == plots.THEMES["dark"].text


@pytest.mark.parametrize(("theme", "at"), [("light", 0), ("dark", 1)])
def test_templates_have_the_colours_of_the_pages(theme, at):
    tokens = (ROOT / "static" / "css" / "variables.css").read_text()
    pairs = {name: both for name, *both in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);", tokens)}
    expected = plots.THEMES[theme]
    assert expected.lines == tuple(pairs[f"plot-{number}"][at] for number in range(1, 8))
    tokens_of_theme = tuple(pairs[name][at] for name in ("line", "muted", "surface"))
    assert (expected.grid, expected.text, expected.surface) == tokens_of_theme


def test_script_of_the_pages_is_of_the_version_that_the_package_writes_for():
    import plotly.offline

    script = (ROOT / "static" / "vendor" / "plotly-basic.min.js").read_text()
    assert f"plotly.js (basic - minified) v{plotly.offline.get_plotlyjs_version()}" in script[:400]
