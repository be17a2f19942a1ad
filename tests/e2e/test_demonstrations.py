"""A demonstration in the browser: one button, two gangs side by side, and what one saw."""

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.conftest import Running

pytestmark = pytest.mark.browser


def test_one_button_shows_two_gangs_run_one_after_the_other(hekla: Running, page: Page) -> None:
    page.goto("/")
    page.get_by_role("link", name="Demonstrations").click()
    page.locator("#demonstration-gangs").get_by_role("button", name="Start on the simulated cluster").press("Enter")
    page.wait_for_url("**/demonstrations/gangs/")
    expect(page.get_by_text("Simulation")).to_be_visible()
    first, second = (page.locator("[id^=demonstration-job-].card").nth(place) for place in (0, 1))
    expect(first).to_contain_text("4 / 4", timeout=20_000)
    expect(first.locator(".phase-running.pod")).to_have_count(4, timeout=20_000)
    expect(second.locator(".phase-pending.pod")).to_have_count(4)
    expect(second.locator(".phase-running.pod")).to_have_count(4, timeout=30_000)
    expect(first.locator(".card-head")).to_contain_text("Completed")
    expect(page.locator("#demonstration-run")).to_contain_text("Result", timeout=30_000)
    expect(second.locator(".card-head")).to_contain_text("Completed")
    expect(page.get_by_role("button", name="Start again")).to_be_visible()
