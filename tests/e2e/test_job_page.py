"""The page of a job: from the home page to a failed job's cause, its last error and its files in at most two clicks;
tabs that the address keeps, and that a change reaches while they are open.
"""

import re
import time
from typing import Literal

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.e2e.conftest import HeklaServer, clean
from tests.e2e.people import send
from tests.e2e.test_every_page import LEVELS, _violations
from tests.support.examples import EVERY

pytestmark = pytest.mark.browser

MOST_SECONDS, MOST_TRIES = 1.5, 3
"""From a click on the home page to the answer, on a quiet machine. Checked with `HEKLA_EXAMPLES=1` only."""
METRICS = "for n in 1 2 3; do echo ::metric step=$n loss=$n accuracy=$n; done; "
SCRIPT = (
    "mkdir out; echo weights > out/model.txt; echo 2026-01-01 10:00:00 INFO begin; "
    f"{METRICS}echo ERROR no such data; exit 3"
)
COLOUR_RULES = ["color-contrast", "link-in-text-block"]
SCHEMES: list[tuple[Literal["light", "dark"], list[str]]] = [("light", LEVELS), ("dark", COLOUR_RULES)]
"""With the accessibility rules of each: a scheme changes only colours. By default, a third of the tabs has both."""
TABS = ("overview", "log", "pods", "results", "files", "events", "settings")


def submit(page: Page, name: str, command: list[str], cpu: str = "100m", replicas: int = 1) -> str:
    task = {"name": "main", "replicas": replicas, "command": command, "resources": {"cpu": cpu}}
    job = send(page, "POST", "/api/v1/jobs", {"name": name, "tasks": [task]})["job"]
    assert isinstance(job, dict)
    return str(job["uid"])


def reach(page: Page, job: str, found: Locator, words: str, tab: str = "") -> None:
    """Open a job with a click on the home page, and a tab with a second one: the words appear.

    Prints the seconds that it took (`pytest -rP`); the best of three tries counts.
    """
    seconds: list[float] = []
    while not seconds or (EVERY == 1 and min(seconds) > MOST_SECONDS and len(seconds) < MOST_TRIES):
        page.goto("/")
        link = page.locator("main").get_by_role("link", name=job, exact=True).first
        link.wait_for()
        began = time.monotonic()
        link.click()
        page.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}/"))
        if tab:
            page.get_by_role("link", name=tab, exact=True).click()
        expect(found.first).to_contain_text(words, timeout=30_000)
        seconds.append(time.monotonic() - began)
    print(f"{words}: {min(seconds):.2f} s")
    assert EVERY > 1 or min(seconds) <= MOST_SECONDS, seconds


def test_failed_job_shows_its_cause_its_last_error_and_its_files(hekla: HeklaServer, page: Page) -> None:
    uid = submit(page, "broken", ["sh", "-c", SCRIPT])
    page.goto(f"/jobs/{uid}/")
    expect(page.locator("#job-head")).to_contain_text("Failed", timeout=60_000)

    reach(page, "broken", page.locator("#job-evidence"), "ERROR no such data")
    expect(page.locator("#job-waiting")).to_contain_text("failed with exit code 3")
    bottom = page.locator("#job-evidence").bounding_box()
    assert bottom
    assert bottom["y"] + bottom["height"] <= 900

    reach(page, "broken", page.locator("[data-log-lines] [data-level=error]"), "ERROR no such data", tab="Log")
    page.get_by_label("Levels").select_option("error")
    expect(page.locator(".log-line", has_text="INFO begin")).to_be_hidden()

    reach(page, "broken", page.get_by_role("link", name="out/"), "out/", tab="Files")
    page.get_by_role("link", name="out/").click()
    with page.expect_download() as download:
        page.get_by_role("row", name="model.txt").get_by_role("link", name=re.compile("Download")).click()
    assert download.value.path().read_text() == "weights\n"
    for number, tab in enumerate(TABS):
        page.goto(f"/jobs/{uid}/?tab={tab}")
        for scheme, rules in SCHEMES if number % EVERY == 0 else SCHEMES[:1]:
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert _violations(page, rules) == [], (tab, scheme)
    page.emulate_media(color_scheme="light", reduced_motion="null")

    page.goto(f"/jobs/{uid}/?tab=results")
    plots, labels = page.locator("[data-plot] .nsewdrag"), page.locator(".hoverlayer").locator(".legend, .hovertext")
    expect(plots).to_have_count(2)
    plots.first.hover()
    expect(labels).to_have_count(2)  # a crosshair in both
    page.locator("#job-head h1").hover()
    expect(labels).to_have_count(0)

    page.get_by_role("button", name="Retry").click()
    page.wait_for_url(lambda url: "/jobs/" in url and uid not in url)
    expect(page.locator("#job-head h1")).to_have_text("broken-1")


def test_open_tab_is_in_the_address_and_follows_changes(hekla: HeklaServer, page: Page) -> None:
    clean(hekla, page)
    page.goto("/")
    uid = submit(page, "holder", ["sh", "-c", "echo ready; sleep 300"], cpu="1")
    page.goto(f"/jobs/{uid}/")
    expect(page.locator("#job-head")).to_contain_text("Running", timeout=60_000)
    page.get_by_role("link", name="Events", exact=True).click()
    page.wait_for_url("**/?tab=events")
    expect(page.locator("#job-tab-events")).to_have_attribute("aria-current", "page")
    page.reload()
    expect(page.locator("#job-timeline")).to_contain_text("Submitted to queue")
    page.get_by_role("link", name="Pods", exact=False).first.click()
    page.wait_for_url("**/?tab=pods")
    expect(page.locator("#job-pods")).to_contain_text("main-0")
    send(page, "POST", f"/api/v1/jobs/{uid}/actions", {"action": "AbortJob"})
    expect(page.locator("#job-head")).to_contain_text("Aborted", timeout=60_000)
    expect(page.locator("#job-pods")).to_contain_text("stopped by SIGTERM", timeout=10_000)
    page.go_back()
    expect(page.locator("#job-timeline")).to_contain_text("Abort requested.")
