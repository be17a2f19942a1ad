"""The list of jobs: bulk actions, saved views, columns and groups."""

import re

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.conftest import HeklaServer
from tests.e2e.people import send

pytestmark = pytest.mark.browser


def submit(page: Page, name: str) -> None:
    task = {"name": "main", "command": ["sleep", "600"], "resources": {"cpu": "100m"}}
    send(page, "POST", "/api/v1/jobs", {"name": name, "tasks": [task]})


def test_selected_jobs_are_aborted_on_the_list_and_undone(hekla: HeklaServer, page: Page) -> None:
    for name in ("tidy-one", "tidy-two", "stays"):
        submit(page, name)
    page.goto("/jobs/")
    page.get_by_role("combobox", name="Search").fill("tidy")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("q=tidy"))
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)
    actions = page.locator("#jobs-act")
    expect(actions).to_be_hidden()
    page.locator("body").press("j")
    page.keyboard.press("x")
    expect(actions).to_be_visible()
    expect(actions).to_contain_text("1 selected")
    page.get_by_label("Select all on this page").check()
    expect(actions).to_contain_text("2 selected")
    actions.get_by_role("button", name="Abort").click()
    page.locator("dialog[open]").get_by_role("button", name="Abort").click()
    expect(page.locator("#bulk-report")).to_contain_text("2 jobs are being aborted.")
    page.wait_for_url(re.compile("q=tidy"))
    expect(page.locator("tbody tr", has_text="Aborted")).to_have_count(2, timeout=30_000)
    page.goto("/jobs/?q=stays")
    expect(rows).not_to_contain_text("Aborted")
    rows.first.hover()
    page.get_by_role("button", name="Abort stays").click()
    page.locator("dialog[open]").get_by_role("button", name="Abort").click()
    expect(page.locator("#bulk-report")).to_contain_text("1 job is being aborted.")
    expect(rows).to_contain_text("Aborted", timeout=30_000)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#bulk-report")).to_contain_text("1 job is resumed.")
    expect(rows).to_contain_text("Running", timeout=30_000)


def test_views_and_columns_are_saved_and_groups_link_to_jobs(hekla: HeklaServer, page: Page) -> None:
    submit(page, "viewed")
    page.goto("/jobs/?q=viewed")
    page.locator("summary[aria-label=Views]").click()
    page.get_by_role("button", name="Save as view").click()
    page.locator("#save-view").get_by_label("Name").fill("The viewed")
    page.locator("#save-view").get_by_role("button", name="Save").click()
    page.wait_for_url(re.compile("q=viewed"))
    page.locator("summary[aria-label=Views]").click()
    page.get_by_role("button", name="Columns and views").click()
    page.locator("#arrange").get_by_text("Priority", exact=True).click()
    page.locator("#arrange").get_by_role("button", name="Save").click()
    expect(page.locator("thead")).to_contain_text("Priority")
    page.get_by_label("Group by").select_option("queue")
    page.wait_for_url(re.compile("group=queue"))
    page.locator("tbody").get_by_role("link", name="default").click()
    page.wait_for_url(re.compile("queue=default"))
    expect(page.locator("tbody")).to_contain_text("viewed")
    page.goto("/jobs/")
    page.locator("summary[aria-label=Views]").click()
    page.get_by_role("link", name="The viewed").click()
    page.wait_for_url(re.compile("q=viewed"))


@pytest.mark.parametrize("path", ["/jobs/?submitted_after=7d", "/jobs/?group=phase"])
def test_list_fits_a_phone(page: Page, path: str) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto(path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.locator(".filters-more summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
