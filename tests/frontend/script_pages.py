"""A page in a real Chromium without a console: the tests answer its requests."""

import json

import pytest
from playwright.sync_api import Browser, ViewportSize
from tests.support.browser import clear
from tests.support.page_sockets import Sockets
from tests.support.static_site import serving

SIZE: ViewportSize = {"width": 900, "height": 700}
POLICY = "default-src 'self'; script-src 'self'; style-src 'self'; connect-src 'self' ws:"

MESSAGES = {"log_older": "{n} older", "log_found": "{i}/{n}", "catching_up": "{n} behind", "live": "Live"}
HEAD = '<link rel="stylesheet" href="/css/base.css"><link rel="stylesheet" href="/css/log.css">'
HEAD += '<link rel="stylesheet" id="plotly.js-style-global" href="/css/plot.css">'
FRAME = """<!doctype html><html lang="en"><head>{head}</head><body {attributes}>{body}
<div id="connection" class="connection"><span data-connection-words></span></div><div id="toasts"></div>
<script type="application/json" id="messages">{messages}</script>
<script src="/vendor/htmx.min.js" defer></script><script src="/vendor/idiomorph-ext.min.js" defer></script>
<script type="module" src="/js/app.js"></script></body></html>"""


@pytest.fixture(scope="module")
def site():
    with serving(POLICY) as site:
        yield site


def new_page(browser, site):
    page = browser.new_context(viewport=SIZE, base_url=site.origin).new_page()
    page.site = site
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.route_web_socket("**/ws/**", lambda socket: page.sockets(socket))  # noqa: PLW0108  (each test has its own)
    return page


def prepare(page):
    page.site.clear()
    page.problems = []
    page.sockets = Sockets()
    clear(page, f"{page.site.origin}/blank", SIZE)


@pytest.fixture(scope="module")
def shared_page(browser: Browser, site):
    page = new_page(browser, site)
    yield page
    page.context.close()


@pytest.fixture
def page(shared_page):
    """The page of most tests."""
    prepare(shared_page)
    yield shared_page
    assert shared_page.problems == []


@pytest.fixture
def own_page(browser: Browser, site):
    """A page for a test that changes what all later documents of a page have."""
    page = new_page(browser, site)
    prepare(page)
    yield page
    page.context.close()
    assert page.problems == []


def show(page, body, *, attributes="", path="/", extra=None):
    """Show a page with this body. `extra` has files by path, in addition to static/."""
    page.site.files = extra or {}
    page.site.html = FRAME.format(head=HEAD, attributes=attributes, body=body, messages=json.dumps(MESSAGES))
    page.goto(path)


def until(page, expression):
    """Wait until the expression is true. Playwright's own waiting needs eval, which the policy forbids."""
    for _ in range(200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(25)
    raise AssertionError(expression)
