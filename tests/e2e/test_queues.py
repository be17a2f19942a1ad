"""The preview of a queue change."""

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def test_change_is_previewed_before_it_is_saved(page: Page) -> None:
    page.goto("/queues/default/edit/")
    preview = page.locator("#queue-preview")
    expect(preview.get_by_role("rowheader", name="default", exact=True)).to_be_visible(timeout=15_000)
    page.locator("#id_capability").fill("cpu=1")
    expect(preview).to_contain_text("1 CPU", timeout=15_000)
    page.get_by_label("Guaranteed").fill("cpu=2")
    error = page.locator("#id_guarantee_error")
    expect(error).to_contain_text("more than limit", timeout=15_000)
    page.get_by_label("Guaranteed").fill("")
    expect(error).to_be_empty(timeout=15_000)
    page.locator("#id_capability").fill("")
    page.locator("#id_weight").fill("7")
    expect(preview).to_contain_text("No pods would be evicted immediately.", timeout=15_000)
    page.get_by_label("Job order").select_option("fair")
    page.get_by_label("Required node groups").fill("a100")
    expect(preview).to_contain_text("No node of cluster", timeout=15_000)
    page.get_by_label("Required node groups").fill("")
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/queues/")
    page.goto("/queues/default/")
    expect(page.locator("#queue-settings")).to_contain_text("7")
    expect(page.locator("#queue-settings")).to_contain_text("fair share")
    expect(page.locator("#queue-shares")).to_contain_text("Calculated by the proportion plugin")


@pytest.mark.parametrize("path", ["/queues/", "/queues/default/", "/queues/default/edit/", "/queues/new/"])
def test_queue_pages_fit_a_phone(page: Page, path: str) -> None:
    page.set_viewport_size({"width": 320, "height": 800})
    assert page.goto(path).status == 200
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
