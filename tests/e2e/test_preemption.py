"""The pages of the two jobs of a preemption, notifications, and the logs of all pods."""

import re

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.conftest import HeklaServer

pytestmark = pytest.mark.browser


def test_both_jobs_of_a_preemption_show_a_receipt(hekla: HeklaServer, page: Page) -> None:
    page.goto("/demonstrations/elastic-same-queue/")
    page.get_by_role("button", name="Start on the simulated cluster").press("Enter")
    first, second = (page.locator("[id^=demonstration-job-].card").nth(index) for index in (0, 1))
    expect(second.locator(".phase-running.pod").first).to_be_visible(timeout=60_000)
    addresses = [card.locator("a[href^='/jobs/']").first.get_attribute("href") for card in (first, second)]
    victim, preemptor = [re.match("/jobs/[^/]+/", str(address)).group() for address in addresses]

    page.goto(victim)
    receipts = page.locator("#job-receipts")
    expect(receipts).to_contain_text("5 pods")
    receipts.get_by_text("Eviction record", exact=True).first.click()
    expect(receipts).to_contain_text("Preemption within the queue")
    expect(receipts).to_contain_text("of work since the start")

    receipts.get_by_role("link", name=re.compile("evicted for")).first.click()
    page.wait_for_url(f"**{preemptor}")
    expect(page.locator("#job-receipts")).to_contain_text("evicted for this job")
    cell = page.locator("#job-ribbon rect").first
    cell.focus()
    expect(page.locator("[data-ribbon-words]")).to_have_text(str(cell.get_attribute("aria-label")))
    page.locator("#ribbon-table summary").click()
    expect(page.locator("#ribbon-table tbody tr").first).to_be_visible()
    page.get_by_role("link", name="Events", exact=True).click()
    expect(page.locator("#job-timeline")).to_contain_text("evicted for this job")

    expect(page.locator(".bell-count")).to_be_visible(timeout=60_000)
    page.locator("#bell").click()
    expect(page.locator("#notifications")).to_contain_text("5 pods of", timeout=30_000)


@pytest.mark.parametrize("path", ["/notifications/", "/notifications/settings/"])
def test_notification_pages_fit_a_phone(page: Page, path: str) -> None:
    page.set_viewport_size({"width": 320, "height": 800})
    assert page.goto(path).status == 200
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_logs_of_all_pods_are_followed_together(hekla: HeklaServer, page: Page) -> None:
    page.goto("/jobs/submit/?preset=distributed")
    page.get_by_label("Name", exact=True).fill("chorus")
    page.locator("#id_tasks-0-command").fill("sh -c 'for n in 1 2 3; do echo verse $n; sleep 1; done'")
    page.locator("#id_tasks-0-cpu").fill("100m")
    page.locator("#id_tasks-0-replicas").fill("2")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}/"))
    expect(page.locator("#job-head")).to_contain_text("Completed", timeout=60_000)
    page.get_by_role("link", name="Log", exact=True).click()
    lines = page.locator("#log-all [data-log-lines]")
    expect(lines).to_contain_text(re.compile(r"-0 [\d:]{8} \| verse 3"), timeout=20_000)
    expect(lines).to_contain_text(re.compile(r"-1 [\d:]{8} \| verse 3"), timeout=20_000)
    with page.expect_download() as download:
        page.locator("#log-all").get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "chorus-logs.zip"
