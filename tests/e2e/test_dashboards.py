"""The dashboards of operations on some minutes of recorded data, written through the services of the controller."""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.e2e.conftest import HeklaServer, sign_in
from tests.support.browser import SIZE

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ALL = ("", "gpu-time/", "waste/", "waiting/", "failures/", "queues/", "sessions/", "nodes/")
CSV = {
    "gpu-time": ("free", "gpu-time/file/"),
    "job-waiting": ("completed", "waiting/file/"),
    "job-failures": ("ended", "failures/file/"),
}
PLOTS = {
    "gpu-time": "gpu-time-plot", "job-waiting": "throughput-plot", "job-failures": "causes-plot",
    "queue-use": "queue-use-plot",
}  # fmt: skip
PAGES = {"gpu-time": "gpu-time/", "job-waiting": "waiting/", "job-failures": "failures/", "queue-use": "queues/"}


@dataclass(frozen=True)
class Console:
    """A server with recorded data, and the page of its first admin."""

    server: HeklaServer
    page: Page

    def open(self, dashboard: str, **query: str) -> None:
        words = "&".join(f"{name}={value}" for name, value in {"period": "day", **query}.items())
        self.page.goto(f"/operations/{dashboard}?{words}")

    def rest(self, name: str, period: str = "day") -> Any:
        response = self.page.request.get(f"/api/v1/{name}?period={period}")
        assert response.ok
        return response.json()

    def drawn(self, plot: str) -> dict[str, list[float]]:
        """The values of each trace that Plotly shows."""
        self.page.wait_for_function(
            "id => document.getElementById(id).parentElement.querySelector('.main-svg')", arg=plot
        )
        area = f"document.getElementById('{plot}').parentElement.querySelector('[data-plot-area]')"
        found = self.page.evaluate(f"{area}.data.map((trace) => [trace.name, [...trace.y]])")
        return {name: [value or 0 for value in values] for name, values in found}


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Console]:
    server = HeklaServer(tmp_path_factory.mktemp("dashboards") / "home")
    context = browser.new_context(base_url=server.url, viewport=SIZE, reduced_motion="reduce")
    try:
        assert server.operator(do="minutes") == "done"
        page = context.new_page()
        sign_in(server, page, server.sign_in_link)
        yield Console(server, page)
    finally:
        context.close()
        server.stop()


def test_plots_have_the_values_of_rest(console: Console) -> None:
    def in_one_minute(name: str) -> tuple[Any, dict[str, list[float]]]:
        """What REST has, and the plot. The hour moves on each minute, between both."""
        while True:
            before = console.rest(name, "hour")
            console.open(PAGES[name], period="hour")
            drawn = console.drawn(PLOTS[name])
            if console.rest(name, "hour")["begin"] == before["begin"]:
                return before, drawn

    found, drawn = in_one_minute("gpu-time")
    free = [round(point["gpu_seconds"]["free"] / 60, 3) for point in found["points"]]
    assert drawn["Free"][:-2] == free[:-2]  # the last minutes may be measured meanwhile
    assert sum(free) > 0
    found, drawn = in_one_minute("queue-use")
    (queue,) = found["queues"]
    held = [round(point["allocated"] / 60, 3) for point in queue["points"]]
    assert drawn["queue-0"][:-2] == held[:-2]
    console.open(PAGES["job-waiting"])
    drawn, found = console.drawn(PLOTS["job-waiting"]), console.rest("job-waiting")
    assert drawn["Completed"] == [point["counts"]["completed"] for point in found["points"]]
    console.open(PAGES["job-failures"])
    drawn, found = console.drawn(PLOTS["job-failures"]), console.rest("job-failures")
    assert sum(map(sum, drawn.values())) == sum(found["total"]["failed_by_cause"].values()) > 0


def test_figures_lead_to_as_many_rows(console: Console) -> None:
    page = console.page
    console.open("waiting/")
    for name in ("Submitted", "Failed"):
        row = page.locator("#throughput-card tr").filter(has=page.get_by_role("link", name=name, exact=True))
        count = int(row.locator("td").first.inner_text())
        assert 0 < count < 200
        row.get_by_role("link").click()
        expect(page.locator("main tbody tr")).to_have_count(count)
        page.go_back()
    overview = console.rest("overview")
    console.open("")
    (failed,) = [one["value"] for one in overview["figures"] if one["name"] == "failed"]
    expect(page.locator("#figure-failed .stat-value")).to_have_text(f"{failed:.0f}")
    page.locator("#figure-failed a").click()
    expect(page.locator("#causes-card")).to_contain_text(f"{failed:.0f} jobs failed")


def test_files_agree_with_the_pages(console: Console) -> None:
    for name, (column, path) in CSV.items():
        text = console.page.request.get(f"/operations/{path}?period=day").text()
        written = sum(float(row[column]) for row in csv.DictReader(io.StringIO(text)))
        found = console.rest(name)
        if name == "gpu-time":
            assert written * 3600 == pytest.approx(found["gpu_seconds"]["free"], rel=0.001)
        else:
            counts = found["total"]["counts"]
            ended = sum(counts[one] for one in ("completed", "failed", "stopped"))
            assert written == (ended if column == "ended" else counts[column])


def test_another_period_keeps_the_filters(console: Console) -> None:
    for dashboard in ("gpu-time/", "waiting/", "failures/", "queues/"):
        console.open(dashboard, queue="queue-0")
        console.page.get_by_role("navigation", name="Period").get_by_role("link", name="Week").click()
        expect(console.page).to_have_url(re.compile(r"(?=.*period=week)(?=.*queue=queue-0)"))
        expect(console.page.locator("select[name=queue]")).to_have_value("queue-0")


def test_plot_is_saved_as_png_with_the_keyboard(console: Console) -> None:
    console.open("gpu-time/")
    console.drawn("gpu-time-plot")
    button = console.page.get_by_role("button", name=re.compile("Save as PNG.*Mean number of GPUs"))
    button.focus()
    with console.page.expect_download() as download:
        console.page.keyboard.press("Enter")
    assert re.fullmatch(r"Mean-number-of-GPUs(-\d{4}-\d\d-\d\d(T\d{4})?){2}\.png", download.value.suggested_filename)
    picture = download.value.path().read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert int.from_bytes(picture[16:20]) > 1000
    assert len(picture) > 10_000  # not empty


def test_page_follows_new_sums_and_keeps_zoom_and_place(console: Console) -> None:
    page = console.page
    console.open("waiting/", queue="queue-0")
    console.drawn("throughput-plot")
    cell = (
        page.locator("#throughput-card tr").filter(has=page.get_by_role("link", name="Submitted")).locator("td").first
    )
    before = int(cell.inner_text())
    area = "document.getElementById('throughput-plot').parentElement.querySelector('[data-plot-area]')"
    middle = page.evaluate(
        f"""async () => {{
            const {{ x }} = {area}.data[0];
            await Plotly.relayout({area}, {{ "xaxis.range": [x[4], x[12]] }});
            window.isSame = true;
            scrollTo(0, 300);
            return x[4];
        }}"""
    )
    assert console.server.operator(do="news") == "done"
    expect(cell).to_have_text(str(before + 1))
    assert page.evaluate("window.isSame && scrollY") == 300
    assert page.evaluate(f"{area}._fullLayout.xaxis.range[0]").startswith(middle[:16])
    expect(page).to_have_url(re.compile("queue=queue-0"))


def test_nothing_overflows_on_a_phone(console: Console) -> None:
    page = console.page
    page.set_viewport_size({"width": 360, "height": 800})
    for dashboard in ALL:
        console.open(dashboard)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, dashboard
    page.set_viewport_size(SIZE)
