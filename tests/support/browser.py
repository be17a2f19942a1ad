"""One real Chromium for every test with the fixture `browser`; these tests run last (see `order`).

Playwright's synchronous interface leaves an event loop running in its thread: a second instance, an asynchronous test
and Django's ORM all refuse to run beside it. So there is one instance, in the last tests of the run.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from hekla.launcher.browser import find

expect.set_options(timeout=20_000)  # milliseconds; other tests and their servers run beside this one

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    executable = find()
    if executable is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield chromium
        chromium.close()
