"""Security keys in a real browser, with Chromium's virtual authenticator."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.e2e.conftest import HeklaServer
from tests.e2e.people import PASSWORD, drop_session, invite, join
from tests.e2e.test_keyboard import WIDE, Keys

pytestmark = pytest.mark.browser

KEY = {
    "protocol": "ctap2",
    "transport": "usb",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}
CANCELLED = "() => { navigator.credentials.get = () => Promise.reject(new DOMException('', 'NotAllowedError')) }"


@pytest.fixture
def kim(hekla: HeklaServer, browser: Browser, page: Page) -> Iterator[Page]:
    """A page of a person with a security key, not signed in, at the host name where browsers allow keys."""
    join(hekla, browser, invite(page), "kim").context.close()
    context = browser.new_context(base_url=f"http://localhost:{hekla.port}", viewport=WIDE)
    visitor = context.new_page()
    devtools = context.new_cdp_session(visitor)
    devtools.send("WebAuthn.enable")
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": KEY})
    yield visitor
    context.close()


def test_key_is_added_and_signs_in_with_the_keyboard(kim: Page) -> None:
    keys = Keys(kim)
    sign_in(keys)
    expect(kim.locator("h1")).to_have_text("Home")
    add_key(keys)
    drop_session(kim)
    sign_in(keys)
    expect(kim.locator("h1")).to_have_text("Two-factor authentication required")
    check_sign_in_without_a_key(keys)
    keys.to("[data-key] button")
    keys.press("Enter")
    expect(kim.locator("h1")).to_have_text("Home")
    kim.goto("/accounts/me/second-factor/")
    expect(kim.locator("#keys tbody tr")).not_to_contain_text("never used")


def sign_in(keys: Keys) -> None:
    keys.page.goto("/accounts/sign-in/")
    keys.write("[name=username]", "kim")
    keys.write("[name=password]", PASSWORD)
    keys.press("Enter")


def add_key(keys: Keys) -> None:
    keys.page.goto("/accounts/me/second-factor/")
    keys.write("#id_name", "blue key")
    keys.press("Enter")
    expect(keys.page.locator(".code code")).to_have_text(re.compile(r"\S+\s+\S+"))
    keys.page.goto("/accounts/me/second-factor/")
    expect(keys.page.locator("#keys tbody tr")).to_contain_text("blue key")
    keys.write("#id_name", "the same one")
    keys.press("Enter")
    expect(keys.page.locator("[data-key-problem]")).to_contain_text("already registered")


def check_sign_in_without_a_key(keys: Keys) -> None:
    """Cancelling, or a browser without security keys, shows the reason. A recovery code works as well."""
    button, problem = "[data-key] button", keys.page.locator("[data-key-problem]")
    assert keys.is_at(button)
    keys.page.evaluate(CANCELLED)
    keys.press("Enter")
    expect(problem).to_contain_text("No answer from the key")
    expect(keys.page.locator(button)).to_be_focused()
    keys.page.evaluate("delete window.PublicKeyCredential")
    keys.press("Enter")
    expect(problem).to_contain_text("This browser does not support")
    keys.write("[name=code]", "123456")
    keys.press("Enter")
    expect(keys.page.get_by_text("Unknown or used recovery code")).to_be_visible()


def test_page_at_an_ip_address_links_to_the_host_name(hekla: HeklaServer, page: Page) -> None:
    page.goto("/accounts/me/second-factor/")
    link = f"http://localhost:{hekla.port}/accounts/me/second-factor/"
    expect(page.locator(f'#keys a[href="{link}"]')).to_be_visible()
    expect(page.get_by_role("button", name="Add key")).to_have_count(0)
