"""People come in by a table, and an admin acts for one of them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser
TABLE = "email;name;role\nhanna@example.org;Hanna;viewer\nnobody;;king\n"


def test_a_table_is_looked_at_corrected_and_imported(page: Page, tmp_path: Path) -> None:
    page.set_viewport_size({"width": 320, "height": 800})
    page.goto("/tenants/first/")
    page.get_by_role("link", name="Import people").click()
    (tmp_path / "people.csv").write_bytes(TABLE.encode("utf-16"))
    page.get_by_label("Or upload a file").set_input_files(tmp_path / "people.csv")
    page.get_by_role("button", name="Preview").click()
    outcome = page.locator("#outcome")
    expect(outcome).to_contain_text("Enter a valid email address.")
    expect(outcome).to_contain_text("Unknown role")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.get_by_label("People").fill(TABLE.replace("nobody;;king", "ida@example.org;Ida;"))
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_text("Shown once")).to_be_visible()
    with page.expect_download() as kept:
        page.get_by_role("link", name="Download links as CSV").click()
    lines = kept.value.path().read_text(encoding="utf-8-sig").splitlines()
    assert [line.split(",")[1] for line in lines] == ["email", "hanna@example.org", "ida@example.org"]
    page.get_by_role("button", name="Preview").click()
    expect(outcome).to_contain_text("An invitation is already open.")


@pytest.fixture
def admin(page: Page, signed_in: dict[str, object]) -> Iterator[Page]:
    """Somebody who came in just now, as who acts for another must have; that takes several sessions, and the tests that
    follow go on with the last.
    """
    page.goto("/accounts/1/")
    page.get_by_role("button", name="Create sign-in link").click()
    page.goto(page.locator("code", has_text="/accounts/link/").inner_text())
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("/")
    yield page
    signed_in.update(page.context.storage_state())  # type: ignore[arg-type]


def test_an_admin_acts_for_a_person_and_is_themselves_again(admin: Page) -> None:
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
    banner = page.locator("#acting")
    expect(banner).to_contain_text("You are acting as klara.")
    expect(banner).to_contain_text("Her job is lost.")
    page.goto("/jobs/submit/")
    page.get_by_label("Name", exact=True).fill("of-klara")
    page.locator("#id_tasks-0-command").fill("true")
    page.locator("#id_tasks-0-cpu").fill("100m")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}/"))
    expect(page.locator("#job-head")).to_contain_text("Completed", timeout=30_000)  # told by the socket
    page.goto("/accounts/me/")
    expect(page.get_by_text("This page is closed while you act for another person")).to_be_visible()
    banner.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("You stopped acting for klara.")).to_be_visible()
    expect(banner).to_have_count(0)
    page.goto("/audit/?person=klara&kind=JobSubmitted")
    expect(page.get_by_role("table")).to_contain_text("admin as klara")
