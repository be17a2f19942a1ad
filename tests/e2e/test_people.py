"""The import of people from a table, and impersonation."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser
TABLE = "email;name;role\nhanna@example.org;Hanna;viewer\nnobody;;king\n"


def test_table_is_previewed_corrected_and_imported(page: Page, tmp_path: Path) -> None:
    page.set_viewport_size({"width": 320, "height": 800})
    page.goto("/tenants/first/")
    page.get_by_role("link", name="Import people").click()
    (tmp_path / "people.csv").write_bytes(TABLE.encode("utf-16"))
    page.get_by_label("Or upload a file").set_input_files(tmp_path / "people.csv")
    page.get_by_role("button", name="Preview").click()
    result = page.locator("#outcome")
    expect(result).to_contain_text("Enter a valid email address.")
    expect(result).to_contain_text("Unknown role")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.get_by_label("People").fill(TABLE.replace("nobody;;king", "ida@example.org;Ida;"))
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_text("Shown once")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download links as CSV").click()
    lines = download.value.path().read_text(encoding="utf-8-sig").splitlines()
    assert [line.split(",")[1] for line in lines] == ["email", "hanna@example.org", "ida@example.org"]
    page.get_by_role("button", name="Preview").click()
    expect(result).to_contain_text("An invitation is already open.")


@pytest.fixture
def admin(page: Page) -> Page:
    """The first admin, who has just signed in: impersonation requires that."""
    page.goto("/accounts/1/")
    page.get_by_role("button", name="Create sign-in link").click()
    page.goto(page.locator("code", has_text="/accounts/link/").inner_text())
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("/")
    return page


def test_admin_impersonates_a_person_and_stops(admin: Page) -> None:
    page = admin
    page.goto("/accounts/new/")
    page.get_by_label("User name").fill("klara")
    page.get_by_role("button", name="Add").click()
    page.goto("/people/import/?tenant=first")
    page.get_by_label("People").fill("username\nklara")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Import").click()
    page.goto("/accounts/")
    page.get_by_role("link", name="Impersonate klara").click()
    page.get_by_label("Reason").fill("Her job is lost.")
    page.get_by_role("button", name="Impersonate klara").click()
    banner = page.locator("#impersonation")
    expect(banner).to_contain_text("You are acting as klara.")
    expect(banner).to_contain_text("Her job is lost.")
    page.goto("/jobs/submit/")
    page.get_by_label("Name", exact=True).fill("of-klara")
    page.locator("#id_tasks-0-command").fill("true")
    page.locator("#id_tasks-0-cpu").fill("100m")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}/"))
    expect(page.locator("#job-head")).to_contain_text("Completed", timeout=30_000)  # the socket sends the change
    page.goto("/accounts/me/")
    expect(page.get_by_text("This page is closed while you act for another person")).to_be_visible()
    banner.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("You stopped acting for klara.")).to_be_visible()
    expect(banner).to_have_count(0)
    page.goto("/audit/?person=klara&kind=JobSubmitted")
    expect(page.get_by_role("table")).to_contain_text("admin as klara")
