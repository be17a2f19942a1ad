"""Demonstrations in the browser: one button starts one, and its page draws the nodes and shows the result."""

import re

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


def test_drawing_shows_racks_with_and_without_the_plugin(hekla: HeklaServer, page: Page) -> None:
    page.goto("/demonstrations/racks/")
    page.get_by_role("button", name="Start on the simulated cluster").press("Enter")
    nodes = page.locator("#demonstration-room").get_by_role("img")
    for number in (1, 2):
        expect(page.locator(f".slot-of-job-{number}")).to_have_count(8, timeout=20_000)
    for at in range(4):
        expect(nodes.nth(at)).to_have_accessible_name(re.compile(r"node-\d: job [12]: 4 GPUs, free: 0"))
    expect(page.locator("#demonstration-run")).to_contain_text("Each job had its own rack", timeout=60_000)
    page.get_by_role("button", name="Start without network-topology-aware").press("Enter")
    expect(page.get_by_text("without network-topology-aware", exact=True)).to_be_visible()
    result = page.locator("#demonstration-run")
    expect(result).to_contain_text("the workers of each job were in both racks", timeout=60_000)
