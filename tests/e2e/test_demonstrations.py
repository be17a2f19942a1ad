"""The demonstration of gangs in the browser: one button starts two gangs, and the page shows the result."""

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.conftest import HeklaServer

pytestmark = pytest.mark.browser


def test_one_button_runs_two_gangs_in_sequence(hekla: HeklaServer, page: Page) -> None:
    page.goto("/")
    page.get_by_role("link", name="Demonstrations").click()
    page.locator("#demonstration-gangs").get_by_role("button", name="Start on the simulated cluster").press("Enter")
    page.wait_for_url("**/demonstrations/gangs/")
    expect(page.get_by_text("Simulation")).to_be_visible()
    first, second = (page.locator("[id^=demonstration-job-].card").nth(index) for index in (0, 1))
    expect(first).to_contain_text("4 / 4", timeout=20_000)
    expect(first.locator(".phase-running.pod")).to_have_count(4, timeout=20_000)
    expect(second.locator(".phase-pending.pod")).to_have_count(4)
    expect(second.locator(".phase-running.pod")).to_have_count(4, timeout=30_000)
    expect(first.locator(".card-head")).to_contain_text("Completed")
    expect(page.locator("#demonstration-run")).to_contain_text("Result", timeout=30_000)
    expect(second.locator(".card-head")).to_contain_text("Completed")
    expect(page.get_by_role("button", name="Start again")).to_be_visible()
