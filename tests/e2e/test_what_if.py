"""A job that waits says why, and is unblocked by one of the changes that are offered; a draft says what would be."""

import re

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.conftest import Running

pytestmark = pytest.mark.browser

# The console learns how long jobs run from those that ran before, and other tests may have run some.
WHEN = re.compile(r"Start time unknown|Starts in about")


def fill(page: Page, *, name: str, replicas: int, cpu: str) -> None:
    page.goto("/jobs/submit/?preset=distributed")
    page.get_by_label("Name", exact=True).fill(name)
    page.locator("#id_tasks-0-command").fill("sleep 120")
    page.locator("#id_tasks-0-replicas").fill(str(replicas))
    page.locator("#id_tasks-0-cpu").fill(cpu)


def submit(page: Page) -> None:
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}/"))


def cores(page: Page) -> int:
    """How many this machine gives out."""
    page.goto("/clusters/nodes/")
    return int(re.search(r"of (\d+) CPU", page.locator("main").inner_text())[1])


@pytest.fixture(autouse=True)
def _room(page: Page) -> None:
    """Nothing that other tests left holds a place."""
    page.goto("/")
    token = next(cookie["value"] for cookie in page.context.cookies() if cookie["name"] == "csrftoken")
    alive = "phase=running&phase=pending&phase=restarting"
    for job in page.request.get(f"/api/v1/jobs?{alive}&cluster=local").json()["results"]:
        address = f"/api/v1/jobs/{job['uid']}/actions"
        page.request.post(address, data={"action": "AbortJob"}, headers={"X-CSRFToken": token})
    page.goto("/clusters/nodes/")
    expect(page.locator("main")).to_contain_text(re.compile(r"\b0 of \d+ CPU"), timeout=60_000)


def test_a_draft_says_what_would_be_and_takes_a_change(hekla: Running, page: Page) -> None:
    most = cores(page)
    fill(page, name="too-many", replicas=most + 3, cpu="1")
    box = page.locator("#what-if")
    expect(box).to_contain_text("Cannot start now", timeout=10_000)
    box.get_by_role("listitem").filter(has_text="pods instead of").get_by_role("button", name="Fill in form").click()
    expect(box).to_contain_text("Would start now", timeout=10_000)
    assert int(page.locator("#id_tasks-0-replicas").input_value()) <= most


def test_a_waiting_job_is_explained_and_unblocked(hekla: Running, page: Page) -> None:
    most = cores(page)
    fill(page, name="holds-most", replicas=most - 1, cpu="1")
    submit(page)
    expect(page.locator("#job-head")).to_contain_text("Running", timeout=30_000)
    holder = page.url
    fill(page, name="waits-for-room", replicas=2, cpu="1")
    expect(page.locator("#what-if")).to_contain_text("Would be pending", timeout=10_000)
    expect(page.locator("#what-if")).to_contain_text(WHEN, timeout=10_000)
    submit(page)
    expect(page.locator("#job-waiting")).to_contain_text("Pending reason", timeout=20_000)
    box = page.locator("#job-unblock")
    expect(box).to_contain_text("Position in its queue: 1 of 1.", timeout=20_000)
    box.get_by_role("listitem").filter(has_text="pods instead of").get_by_role("button", name="Apply change").click()
    expect(page.locator("#job-head")).to_contain_text("Running", timeout=30_000)
    for address in (page.url, holder):
        page.goto(address)
        page.get_by_role("button", name="Abort").click()
        page.locator("dialog[open]").get_by_role("button", name="Abort").click()
        expect(page.locator("#job-head")).to_contain_text("Aborted", timeout=40_000)
