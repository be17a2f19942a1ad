"""Persons in browsers of their own, who came by an invitation."""

from playwright.sync_api import Browser, Page
from tests.e2e.conftest import Running

PASSWORD = "a-long-walk-home"
PHONE = {"width": 360, "height": 800}


def invitation_link(admin: Page, tenant: str = "first", role: str = "member") -> str:
    """What an admin of the tenant hands over."""
    admin.goto(f"/tenants/{tenant}/")
    admin.get_by_role("link", name="Invite").click()
    admin.get_by_label("Role", exact=True).select_option(role)
    admin.get_by_role("button", name="Invite").click()
    return admin.locator(".code code").inner_text()


def joined(hekla: Running, browser: Browser, link: str, name: str, size: dict[str, int] = PHONE) -> Page:
    """A browser of somebody who has just made an account."""
    visitor = browser.new_context(base_url=hekla.url, viewport=size).new_page()
    visitor.goto(link)
    visitor.get_by_label("User name").fill(name)
    visitor.get_by_label("Password").fill(PASSWORD)
    visitor.keyboard.press("Enter")
    visitor.wait_for_url(f"{hekla.url}/")
    return visitor


def send(page: Page, method: str, path: str, document: object = None) -> dict[str, object]:
    """What REST answers to the person of this page, who must succeed."""
    token = next(cookie["value"] for cookie in page.context.cookies() if cookie["name"] == "csrftoken")
    answer = page.request.fetch(path, method=method, data=document, headers={"X-CSRFToken": token})
    assert answer.ok, (method, path, answer.text())
    return dict(answer.json()) if answer.status != 204 else {}
