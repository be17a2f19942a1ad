"""The script of plots in a real Chromium: colours, ticks, time zones, and a script that is missing."""

import re

import pytest
from tests.frontend.script_pages import own_page, page, shared_page, show, site, until

from hekla.pages.frame import plots

__all__ = ["own_page", "page", "shared_page", "site"]

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def plot(figure, script="/vendor/plotly-basic.min.js") -> str:
    """The HTML of the component c-plot for this figure."""
    return f"""<figure class="plot" data-plot="p" data-plot-script="{script}">
    <script type="application/json" id="p">{plots.to_json(figure)}</script>
    <div class="plot-area" data-plot-area></div></figure>"""


def colour_of_line(page) -> str:
    return page.evaluate("document.querySelector('.scatterlayer .js-line')?.style.stroke ?? ''")


def test_plot_is_drawn_by_plotly_in_the_colours_of_the_theme(page):
    figure = plots.new_figure(xaxis_type="date", showlegend=True)
    figure.add_scatter(x=["2026-11-21T12:00:00Z", "2026-11-21T13:00:00Z"], y=[1, 2], mode="lines", name="main-0")
    radios = "".join(f'<input type="radio" name="t" value="{theme}">' for theme in plots.THEMES)
    switch = f"<div data-theme-switch>{radios}</div>"
    show(page, switch + plot(figure))
    page.check("input[value=light]")
    until(page, "document.querySelector('.scatterlayer .js-line') !== null")
    page.wait_for_timeout(100)
    assert colour_of_line(page) == "rgb(0, 114, 178)"
    assert "main-0" in page.text_content(".legend")
    page.check("input[value=dark]")
    until(page, "document.querySelector('.scatterlayer .js-line').style.stroke === 'rgb(86, 180, 233)'")
    assert page.site.requests.count("/vendor/plotly-basic.min.js") == 1


def test_ticks_are_round(page):
    minutes = [f"2026-11-21T12:{minute:02}:07Z" for minute in range(3, 53, 7)]
    first, second = (plots.new_figure(xaxis_type="date") for _ in range(2))
    for figure, values in ((first, [0.13, 0.94, 0.5, 0.2, 0.1, 0.3, 0.7, 0.9]), (second, [131, 942, 4, 5, 6, 7, 8, 9])):
        figure.add_scatter(x=minutes, y=values, mode="lines")
    show(page, plot(first) + plot(second).replace('"p"', '"q"'))
    until(page, "document.querySelectorAll('.scatterlayer .js-line').length === 2")
    assert all(
        re.match(r"\d\d:\d[05]$", tick)
        for tick in page.locator(".plot >> nth=0 >> .xtick text").all_text_contents()[1:]
    )
    assert page.locator(".plot >> nth=1 >> .ytick text").all_text_contents() == ["0", "200", "400", "600", "800"]


def test_page_without_a_plot_does_not_load_plotly(page):
    show(page, "<p>x</p>")
    assert page.evaluate("window.Plotly === undefined && !document.querySelector('script[src*=plotly]')")


def test_plot_without_its_script_points_to_the_table(own_page):
    page = own_page
    page.add_init_script("window.onunhandledrejection = (event) => { throw event.reason }")
    show(page, plot(plots.new_figure(), "/none.js"))  # the response is a page, not a script
    until(page, "document.querySelector('[data-plot-area]').textContent === 'plot_failed'")
    page.problems.clear()  # the error of the browser about the script


def test_times_are_in_the_zone_of_the_person(page, tmp_path):
    """Plotly draws text without a time zone as it is."""
    figure = plots.new_figure()
    figure.add_scatter(x=["2026-11-21T12:00:00Z", 3], y=[1, 2])
    stub = "window.drawn = []; window.Plotly = { react: (area, data) => window.drawn.push(data) };"
    script = tmp_path / "plotly.min.js"
    script.write_text(stub)
    body = plot(figure, "/stub.js") + '<time id="at" datetime="2026-11-21T12:00:00+01:00" data-exact></time>'
    show(page, body, attributes='data-time-zone="Asia/Shanghai"', extra={"/stub.js": script})
    until(page, "window.drawn?.length > 0")
    assert page.evaluate("window.drawn[0][0].x") == ["2026-11-21 20:00:00", 3]
    assert "7:00:00" in page.text_content("#at")
    zone = page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
    assert f"hekla_time_zone={zone}" in page.evaluate("document.cookie")
    show(page, body, attributes='data-time-zone="Newer/City"', extra={"/stub.js": script})
    until(page, "document.getElementById('at').title")  # the scripts run in the zone of the browser
