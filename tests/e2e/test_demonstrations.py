"""Demonstrations in the browser: one button starts one, and its page draws the nodes and shows the result."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.e2e.conftest import HeklaServer

from hekla.apps.demonstrations.catalogue import DEMONSTRATIONS
from hekla.apps.demonstrations.scenes import Demonstration

pytestmark = pytest.mark.browser


@pytest.mark.thorough  # the drawings show two runs, too
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


def test_drawings_and_a_sentence_show_the_difference(hekla: HeklaServer, page: Page) -> None:
    page.goto("/demonstrations/racks/")
    page.get_by_role("button", name="Start on the simulated cluster").press("Enter")
    whole, part = page.locator("#demonstration-side"), page.locator("#demonstration-side-without")
    _each_job_fills_a_rack(whole)
    result = page.locator("#demonstration-run")
    expect(result).to_contain_text("no job had pods in more than 1 rack", timeout=60_000)
    _each_job_fills_a_rack(whole)
    page.get_by_role("button", name="Start without network-topology-aware").press("Enter")
    expect(part).to_contain_text("The nodes now.")
    expect(result).to_contain_text("; without it, a job had pods in 2 racks.", timeout=60_000)
    expect(part.get_by_role("img", name=re.compile("job 1: 2, job 2: 2")).first).to_be_visible()
    _each_job_fills_a_rack(whole)


def _each_job_fills_a_rack(side: Locator) -> None:
    for at in range(4):
        number = at // 2 + 1
        name = re.compile(rf"node-\d: job {number}: 4, free: 0|node-\d: job {3 - number}: 4, free: 0")
        expect(side.get_by_role("img").nth(at)).to_have_accessible_name(name, timeout=20_000)


OTHERS = [one for one in DEMONSTRATIONS if one.without and one.name != "racks"]


@pytest.mark.thorough
@pytest.mark.parametrize("demonstration", OTHERS, ids=lambda one: one.name)
def test_each_demonstration_shows_its_difference(hekla: HeklaServer, page: Page, demonstration: Demonstration) -> None:
    page.goto(f"/demonstrations/{demonstration.name}/")
    page.get_by_role("button", name="Start on the simulated cluster").press("Enter")
    _ended(page.locator("#demonstration-side"))
    page.get_by_role("button", name=re.compile("^Start (without|with .* instead of) ")).press("Enter")
    _ended(page.locator("#demonstration-side-without"))
    expect(page.locator("#demonstration-run")).to_contain_text("; without it, ")
    expect(page.get_by_text("Unexpected result")).to_have_count(0)


def _ended(side: Locator) -> None:
    expect(side).to_contain_text("This run has ended.", timeout=240_000)
    expect(side.locator(".slot-of-job-1").first).to_be_visible()
