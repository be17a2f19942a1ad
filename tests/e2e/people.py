"""People who signed up with an invitation, each in their own browser."""

from http import HTTPStatus

from playwright.sync_api import Browser, Page, ViewportSize
from tests.e2e.conftest import HeklaServer

PASSWORD = "a-long-walk-home"
PHONE: ViewportSize = {"width": 360, "height": 800}


def invite(admin: Page, tenant: str = "first", role: str = "member") -> str:
    """Create an invitation through REST: three pages take two CPU seconds. Return its link."""
    return str(send(admin, "POST", f"/api/v1/tenants/{tenant}/invitations", {"role": role})["link"])


def join(hekla: HeklaServer, browser: Browser, link: str, name: str, size: ViewportSize = PHONE) -> Page:
    """Create an account with an invitation without rendering. Return an empty page of the new person."""
    context = browser.new_context(base_url=hekla.url, viewport=size)
    assert context.request.get(link).ok
    token = next(cookie["value"] for cookie in context.cookies() if cookie["name"] == "csrftoken")
    form = {"username": name, "password": PASSWORD, "csrfmiddlewaretoken": token}
    assert context.request.post(link, form=form, max_redirects=0).status == HTTPStatus.FOUND
    return context.new_page()


def invitation_link(admin: Page, tenant: str = "first", role: str = "member") -> str:
    """Create an invitation on the pages of the tenant. Return its link."""
    admin.goto(f"/tenants/{tenant}/")
    admin.get_by_role("link", name="Invite").click()
    admin.get_by_label("Role", exact=True).select_option(role)
    admin.get_by_role("button", name="Invite").click()
    return admin.locator(".code code").inner_text()


def sign_up(hekla: HeklaServer, browser: Browser, link: str, name: str, size: ViewportSize = PHONE) -> Page:
    """Create an account on the page of an invitation. Return the page of the new person."""
    visitor = browser.new_context(base_url=hekla.url, viewport=size).new_page()
    visitor.goto(link)
    visitor.get_by_label("User name").fill(name)
    visitor.get_by_label("Password").fill(PASSWORD)
    visitor.keyboard.press("Enter")
    visitor.wait_for_url(f"{hekla.url}/")
    return visitor


def drop_session(page: Page) -> None:
    """Delete the cookies. A page that stayed open could get old ones back, with a response that is on its way."""
    page.goto("about:blank")
    page.context.clear_cookies()


def send(page: Page, method: str, path: str, document: object = None) -> dict[str, object]:
    """Send a REST request as the person of this page. Return the response, which must be a success."""
    token = next(cookie["value"] for cookie in page.context.cookies() if cookie["name"] == "csrftoken")
    response = page.request.fetch(path, method=method, data=document, headers={"X-CSRFToken": token})
    assert response.ok, (method, path, response.text())
    return dict(response.json()) if response.status != 204 else {}
