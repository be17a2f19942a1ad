"""A pending job shows its reason and suggestions that unblock it. A draft shows a preview."""

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.conftest import HeklaServer
from tests.e2e.test_job_page import reach

pytestmark = pytest.mark.browser

# The console estimates run times from earlier jobs, and other tests may have run some.
ESTIMATE = re.compile(r"Start time unknown|Starts in (about|at most)")


def fill(page: Page, *, name: str, replicas: int, cpu: str) -> None:
    page.goto("/jobs/submit/?preset=distributed")
    page.get_by_label("Name", exact=True).fill(name)
    page.locator("#id_tasks-0-command").fill("sleep 120")
    page.locator("#id_tasks-0-replicas").fill(str(replicas))
    page.locator("#id_tasks-0-cpu").fill(cpu)


def submit(page: Page) -> None:
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}/"))


def count_cpus(page: Page) -> int:
    """The number of CPUs that this machine can allocate."""
    page.goto("/clusters/nodes/")
    return int(re.search(r"of (\d+) CPU", page.locator("main").inner_text())[1])


@pytest.fixture(autouse=True)
def _free_cluster(page: Page) -> None:
    """Abort the jobs of other tests, and wait until no CPU is in use."""
    page.goto("/")
    token = next(cookie["value"] for cookie in page.context.cookies() if cookie["name"] == "csrftoken")
    alive = "phase=running&phase=pending&phase=restarting"
    for job in page.request.get(f"/api/v1/jobs?{alive}&cluster=local").json()["results"]:
        address = f"/api/v1/jobs/{job['uid']}/actions"
        page.request.post(address, data={"action": "AbortJob"}, headers={"X-CSRFToken": token})
    page.goto("/clusters/nodes/")
    expect(page.locator("main")).to_contain_text(re.compile(r"\b0 of \d+ CPU"), timeout=60_000)


def test_draft_shows_a_preview_and_applies_a_suggestion(hekla: HeklaServer, page: Page) -> None:
    cpus = count_cpus(page)
    fill(page, name="too-many", replicas=cpus + 3, cpu="1")
    box = page.locator("#what-if")
    expect(box).to_contain_text("Cannot start now", timeout=10_000)
    box.get_by_role("listitem").filter(has_text="pods instead of").get_by_role("button", name="Fill in form").click()
    expect(box).to_contain_text("Would start now", timeout=10_000)
    assert int(page.locator("#id_tasks-0-replicas").input_value()) <= cpus


def test_pending_job_shows_its_reason_and_is_unblocked(hekla: HeklaServer, page: Page) -> None:
    cpus = count_cpus(page)
    fill(page, name="holds-most", replicas=cpus - 1, cpu="1")
    submit(page)
    expect(page.locator("#job-head")).to_contain_text("Running", timeout=30_000)
    running_url = page.url
    fill(page, name="waits-for-room", replicas=2, cpu="1")
    expect(page.locator("#what-if")).to_contain_text("Would be pending", timeout=10_000)
    expect(page.locator("#what-if")).to_contain_text(ESTIMATE, timeout=10_000)
    submit(page)
    expect(page.locator("#job-waiting")).to_contain_text("Pending reason", timeout=20_000)
    box = page.locator("#job-unblock")
    expect(box).to_contain_text("Position in its queue: 1 of 1.", timeout=20_000)
    reach(page, "waits-for-room", box, f"Job holds-most holds {cpus - 1} CPU")
    expect(box.get_by_role("link", name="holds-most")).to_have_attribute("href", urlsplit(running_url).path)
    box.get_by_role("listitem").filter(has_text="pods instead of").get_by_role("button", name="Apply change").click()
    expect(page.locator("#job-head")).to_contain_text("Running", timeout=30_000)
    for address in (page.url, running_url):
        page.goto(address)
        page.get_by_role("button", name="Abort").click()
        page.locator("dialog[open]").get_by_role("button", name="Abort").click()
        expect(page.locator("#job-head")).to_contain_text("Aborted", timeout=40_000)
