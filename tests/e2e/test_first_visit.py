"""The first visit of a new user: the example, logs, languages and search."""

import os
import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.conftest import HeklaServer
from tests.examples.training import EXAMPLES, python_with
from tests.support.examples import EVERY

from hekla.backends.base import EnvironmentSpec
from hekla.backends.local.environments import MARKER
from hekla.backends.local.orders import _environment

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def lend_environment(home: Path) -> None:
    """Put the packages of the example, which the tests of examples have already, where the server would install them.

    To install and compile them takes 30 CPU seconds. The tests of the local backend build an environment.
    """
    requirements = EXAMPLES / "digits" / "environment.txt"
    built = python_with(requirements).parents[1]
    wanted = _environment(EnvironmentSpec("digits", tuple(requirements.read_text().split())), home / "environments")
    assert wanted
    shutil.copytree(built, wanted["folder"], symlinks=True, copy_function=_link)
    Path(wanted["folder"], MARKER).touch()


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another file system
        shutil.copy2(source, target, follow_symlinks=False)


def test_example_job_runs_with_live_logs_and_results(hekla: HeklaServer, page: Page) -> None:
    """By default, its packages are there already."""
    if EVERY > 1:
        lend_environment(hekla.home)
    page.goto("/")
    page.get_by_role("button", name="Run the example").click()
    page.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}/"))
    head = page.locator("#job-head")
    expect(head).to_contain_text("Running", timeout=180_000)  # its environment is made first
    expect(head).to_contain_text("Completed", timeout=300_000)  # a first import from a slow disk
    expect(page.locator("#job-results")).to_contain_text("accuracy", timeout=15_000)
    expect(page.locator("#job-timeline")).to_contain_text("Completed")
    page.get_by_role("link", name="Log", exact=True).click()
    expect(page.locator("[data-log-lines]")).to_contain_text("loss", timeout=10_000)


def test_log_lines_appear_while_the_job_runs(hekla: HeklaServer, page: Page) -> None:
    page.goto("/jobs/submit/")
    page.get_by_label("Name", exact=True).fill("talker")
    script = "import time\nfor n in range(40): print('line', n, flush=True); time.sleep(0.25)"
    page.locator("#id_tasks-0-command").fill(f'python -c "{script}"')
    page.locator("#id_tasks-0-cpu").fill("250m")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}/"))
    expect(page.locator("#job-head")).to_contain_text("Running", timeout=30_000)
    page.get_by_role("link", name="Log", exact=True).click()
    lines = page.locator("[data-log-lines]")
    expect(lines).to_contain_text("line 3", timeout=10_000)
    expect(page.locator("#job-head")).to_contain_text("Running")
    page.get_by_role("button", name="Abort").click()
    page.locator("dialog[open]").get_by_role("button", name="Abort").click()
    expect(page.locator("#job-head")).to_contain_text("Aborted", timeout=30_000)


def test_console_in_chinese(page: Page) -> None:
    page.context.add_cookies(
        [{"name": "django_language", "value": "zh-hans", "url": page.url if "http" in page.url else "http://127.0.0.1"}]
    )
    page.goto("/")
    expect(page.locator("html")).to_have_attribute("lang", "zh-hans")
    expect(page.locator("h1")).to_have_text("首页")


def test_search_finds_jobs_and_help(page: Page) -> None:
    page.goto("/queues/")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Go to").fill("talker")
    option = page.get_by_role("option").filter(has_text="Jobs ·")
    expect(option.first).to_contain_text("talker")
    page.keyboard.press("Control+a")
    page.keyboard.type("five minutes")
    help_page = page.get_by_role("option").filter(has_text="Help").first
    expect(help_page).to_be_visible()
    help_page.click()
    page.wait_for_url("**/help/**")
