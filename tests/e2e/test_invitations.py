"""Invitations: the new account, its first job, and two-factor authentication."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.e2e.conftest import HeklaServer
from tests.e2e.people import PASSWORD, PHONE, drop_session, invitation_link, invite, join, sign_up
from tests.support.authenticator import code_at

from hekla.lib import clock

pytestmark = pytest.mark.browser


def record_clicks(page: Page) -> list[str]:
    """Record the text of everything clicked with the mouse from now on. Clicks by keys do not count."""
    clicks: list[str] = []
    page.context.expose_function("clicked", lambda words: clicks.append(words))  # noqa: PLW0108  (no built-in function)
    script = "event => event.detail && event.isTrusted && clicked(event.target.textContent.trim())"
    page.context.add_init_script(f"addEventListener('click', {script}, true)")
    page.reload()
    return clicks


def test_invited_person_runs_a_job_and_reads_its_log_within_three_clicks(
    hekla: HeklaServer, browser: Browser, page: Page
) -> None:
    link = invitation_link(page)
    visitor = sign_up(hekla, browser, link, "dora")
    expect(visitor.get_by_text("Welcome to First team")).to_be_visible()
    clicks = record_clicks(visitor)
    expect(visitor.locator("#home-jobs")).to_contain_text("You have no jobs yet")
    visitor.get_by_role("link", name="Submit a job").first.click()
    visitor.wait_for_url("**/jobs/submit/")
    visitor.get_by_label("Name", exact=True).fill("my-first")
    visitor.locator("#id_tasks-0-command").fill("sh -c 'echo good morning; sleep 5; echo good night'")
    visitor.locator("#id_tasks-0-cpu").fill("100m")
    visitor.get_by_role("button", name="Submit").click()
    visitor.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}/"))
    head, lines = visitor.locator("#job-head"), visitor.locator("[data-log-lines]")
    expect(head).to_contain_text("Running", timeout=30_000)
    visitor.get_by_role("link", name="Log", exact=True).click()
    expect(lines).to_contain_text("good morning", timeout=20_000)
    expect(head).to_contain_text("Completed", timeout=30_000)
    expect(lines).to_contain_text("good night", timeout=20_000)
    assert 1 <= len(clicks) <= 3, clicks
    visitor.goto(link)
    expect(visitor.get_by_role("heading", name="This invitation is no longer valid")).to_be_visible()
    visitor.context.close()


def test_sign_in_with_password_and_recovery_code(hekla: HeklaServer, browser: Browser, page: Page) -> None:
    visitor = join(hekla, browser, invite(page), "emil")
    visitor.goto("/accounts/me/")
    visitor.get_by_role("link", name="Two-factor authentication").click()
    visitor.get_by_role("button", name="Set up").click()
    secret = visitor.get_by_label("Secret", exact=True).inner_text()
    assert visitor.get_by_role("img", name="QR code of the secret").locator("svg").bounding_box()["width"] > 100
    assert visitor.evaluate("document.documentElement.scrollWidth") <= 360
    visitor.get_by_role("textbox", name="Code").fill(code_at(secret, clock.now()))
    visitor.keyboard.press("Enter")
    codes = visitor.locator(".code code")
    expect(codes).to_have_text(re.compile(r"\S+\s+\S+"))
    recovery = codes.inner_text().split()
    assert len(recovery) == 10
    drop_session(visitor)
    visitor.goto("/accounts/sign-in/")
    visitor.get_by_label("User name").fill("emil")
    visitor.get_by_label("Password").fill(PASSWORD)
    visitor.keyboard.press("Enter")
    visitor.wait_for_url(re.compile("/accounts/sign-in/code/"))
    visitor.keyboard.type("000000")
    visitor.keyboard.press("Enter")
    expect(visitor.get_by_text("Wrong code")).to_be_visible()
    visitor.get_by_role("textbox", name="Code").fill(recovery[0])
    visitor.keyboard.press("Enter")
    visitor.wait_for_url(f"{hekla.url}/")
    visitor.context.close()


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_invitation_pages_fit_a_phone(hekla: HeklaServer, browser: Browser, page: Page, scheme: str) -> None:
    link = invite(page)
    page.set_viewport_size(PHONE)
    visitor = browser.new_context(base_url=hekla.url, viewport=PHONE).new_page()
    for viewer, address in ((visitor, link), (page, link), (page, "/tenants/first/invitations/")):
        viewer.emulate_media(color_scheme=scheme)
        assert viewer.goto(address).status == 200
        assert viewer.evaluate("document.documentElement.scrollWidth") <= 360
    visitor.context.close()
