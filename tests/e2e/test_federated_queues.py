"""An operator federates queues of two clusters. A job submitted there shows its cluster and the reason."""

import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.people import PHONE, send

pytestmark = pytest.mark.browser

CLUSTERS = {"span-narrow": "1", "span-wide": "16"}
DRAFT = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: NAME}
spec:
  queue: SPAN
  tasks:
    - name: main
      template: {spec: {containers: [{name: m, command: ["true"], resources: {requests: {cpu: 4}}}]}}
"""


@pytest.fixture(autouse=True)
def _clusters(page: Page) -> Iterator[None]:
    """Two simulated clusters with one queue each. One is too small for the job."""
    page.goto("/")
    existing = {one["name"] for one in page.request.get("/api/v1/clusters").json()}
    for name, cpu in CLUSTERS.items():
        if name not in existing:
            config = {"nodes": [{"name": f"{name}-1", "allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "20"}}]}
            send(page, "POST", "/api/v1/clusters", {"name": name, "kind": "simulated", "config": config})
            send(page, "POST", "/api/v1/queues", {"name": f"on-{name}", "cluster": name})
    yield
    for one in page.request.get("/api/v1/federated-queues").json():
        if one["name"].startswith("over-"):
            send(page, "DELETE", f"/api/v1/federated-queues/{one['name']}")


def add_federated_queue(page: Page, name: str) -> None:
    page.goto("/queues/")
    page.get_by_role("link", name="Federated queues").click()
    page.get_by_role("link", name="Add federated queue").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("on-span-narrow (span-narrow)").check()
    page.get_by_role("button", name="Add").click()
    expect(page.locator("main")).to_contain_text("Choose queues of at least two clusters.")
    expect(page.get_by_label("on-span-narrow (span-narrow)")).to_be_checked()
    page.get_by_label("on-span-wide (span-wide)").check()
    page.get_by_role("button", name="Add").click()
    page.wait_for_url(f"**/federated-queues/{name}/")
    for cluster in CLUSTERS:
        expect(page.get_by_role("row", name=cluster)).to_contain_text(f"on-{cluster}")


def wait_for_nodes(page: Page) -> None:
    def nodes() -> str:
        return "".join(page.request.get(f"/clusters/nodes/?page={number}").text() for number in (1, 2, 3))

    deadline = time.monotonic() + 60.0
    while not all(f"{name}-1" in nodes() for name in CLUSTERS):
        assert time.monotonic() < deadline
        page.wait_for_timeout(500)


@pytest.mark.parametrize("width", ["wide", pytest.param("phone", marks=pytest.mark.thorough)])
def test_job_goes_to_the_cluster_that_can_start_it_and_shows_why(page: Page, width: str) -> None:
    if width == "phone":
        page.set_viewport_size(PHONE)
    wait_for_nodes(page)
    add_federated_queue(page, f"over-{width}")
    page.goto("/jobs/submit/")
    options = page.locator("#id_queue option").all_inner_texts()
    assert f"over-{width} (the cluster that starts it first)" in options
    page.goto("/jobs/submit/yaml/")
    text = DRAFT.replace("SPAN", f"over-{width}").replace("NAME", f"spans-{width}")
    page.locator("#id_text").fill(text)
    box = page.locator("#what-if")
    expect(box).to_contain_text("Would start now.", timeout=30_000)
    expect(box).to_contain_text("The job cannot start there now.")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}/"))
    placement = page.locator("#job-placement")
    expect(placement).to_contain_text(f"over-{width} assigned the job to span-wide.")
    expect(placement).to_contain_text("The job cannot start there now.")
    expect(page.locator("#job-head")).to_contain_text("on-span-wide")
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
