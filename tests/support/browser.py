"""One real Chromium for every test with the fixture `browser`; `order` runs them without others between them.

Playwright's synchronous interface leaves an event loop running in its thread: a second instance, an asynchronous test
and Django's ORM all refuse to run beside it. So there is one instance, and it ends with the last of these tests.
"""

from collections.abc import Generator, Iterator
from contextlib import suppress

import pytest
from playwright.sync_api import Browser, Error, Page, ViewportSize, expect, sync_playwright

from hekla.launcher.browser import find

expect.set_options(timeout=20_000)  # milliseconds; other tests and their servers run beside this one

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip

SIZE: ViewportSize = {"width": 1280, "height": 720}
_MOST_CHARACTERS = 1500


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test reports what its pages show: a timeout alone does not say what came instead."""
    report = yield
    browser = getattr(item, "funcargs", {}).get("browser")
    if report.when == "call" and report.failed and isinstance(browser, Browser):
        pages = [page for context in browser.contexts for page in context.pages]
        report.sections.extend((f"page {page.url}", _visible_text(page)) for page in pages)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Ends the Chromium, and what depends on it, before a test that does not need it."""
    result = yield
    is_last = needs_browser(item) and nextitem is not None and not needs_browser(nextitem)
    if is_last and isinstance(item, pytest.Function):
        for fixture in item._fixtureinfo.name2fixturedefs["browser"]:
            fixture.finish(item._request)  # type: ignore[arg-type]  # pytest's own scopes end with a module or with the whole session
    return result


def needs_browser(item: pytest.Item) -> bool:
    """Whether the test runs in the Chromium."""
    return "browser" in getattr(item, "fixturenames", ())


def _visible_text(page: Page) -> str:
    with suppress(Error):
        return page.locator("body").inner_text(timeout=2_000)[:_MOST_CHARACTERS]
    return "It could not be read."


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    executable = find()
    if executable is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium-headless-shell")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield chromium
        chromium.close()


def clear(page: Page, blank: str, size: ViewportSize = SIZE) -> None:
    """Make a page as good as new, except for its cookies. `blank` is an address of its origin without scripts.

    A new page costs four times the CPU of another visit in an old one, and a new context eight times: a renderer
    process starts, and all scripts are loaded and compiled again.
    """
    for other in page.context.pages:
        if other != page:
            other.close()
    page.unroute_all()
    page.set_viewport_size(size)
    page.emulate_media(media="null", color_scheme="null", reduced_motion="null")
    page.goto(blank)
    page.evaluate("localStorage.clear(); sessionStorage.clear()")
