"""An admin adds a Kubernetes cluster. Jobs run there, are stopped and deleted, and leave nothing behind."""

import json
import re
import time

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.conftest import HeklaServer
from tests.e2e.people import send
from tests.kubernetes.control_plane import ControlPlane

pytestmark = [pytest.mark.browser, pytest.mark.thorough]
"""`tests/apps/test_cluster_keys.py` adds clusters by the same forms, without a second API server for one browser."""


def job(name: str, replicas: int, seconds: str) -> dict[str, object]:
    task = {
        "name": "worker", "replicas": replicas, "command": ["true"], "image": "none",
        "resources": {"cpu": "1"}, "env": {"HEKLA_SIM_SECONDS": seconds},
    }  # fmt: skip
    return {"name": name, "queue": "fleet", "tasks": [task]}


def submit(page: Page, spec: object) -> str:
    response: dict[str, dict[str, str]] = send(page, "POST", "/api/v1/jobs", spec)  # type: ignore[assignment]
    return response["job"]["uid"]


def leftovers(plane: ControlPlane, namespace: str) -> list[str]:
    """The objects in the namespace with the labels of Hekla."""
    found = []
    for kind in ("pods", "services", "configmaps", "secrets"):
        objects = plane.request("GET", f"/api/v1/namespaces/{namespace}/{kind}")["items"]
        found += [f"{kind}/{one['metadata']['name']}" for one in objects if "hekla.dev/job" in str(one["metadata"])]
    return found


def test_cluster_with_a_kubeconfig_file_is_added_and_used(
    hekla: HeklaServer, page: Page, small_cluster: ControlPlane, granted_namespace: str
) -> None:
    kubeconfigs = hekla.home / "kubeconfigs"
    kubeconfigs.mkdir(exist_ok=True)
    page.goto("/clusters/new/")
    page.get_by_label("Name").fill("fleet")
    page.get_by_label("Kind").select_option("kubernetes")
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Connection", exact=True).select_option("file")
    page.get_by_label("Kubeconfig file").fill("fleet")
    page.get_by_label("Namespace", exact=True).fill(granted_namespace)
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("Cannot read the kubeconfig fleet").first).to_be_visible(timeout=60_000)
    expect(page.get_by_role("alert")).to_be_focused(
        timeout=60_000
    )  # focusing scrolls, which would move the click target
    (kubeconfigs / "fleet").write_text(json.dumps(small_cluster.kubeconfig(small_cluster.user_token)))
    page.get_by_role("button", name="Add", exact=True).click()
    page.wait_for_url("**/clusters/", timeout=60_000)
    send(page, "POST", "/api/v1/queues", {"name": "fleet", "cluster": "fleet"})

    page.goto(f"/jobs/{submit(page, job('whole', 4, '6'))}/?tab=pods")
    head = page.locator("#job-head")
    expect(head).to_contain_text("Running", timeout=30_000)
    expect(page.get_by_role("cell", name=re.compile("node-0")).first).to_be_visible()
    expect(head).to_contain_text("Completed", timeout=30_000)

    page.goto(f"/jobs/{submit(page, job('stopped', 2, '1000'))}/")
    expect(head).to_contain_text("Running", timeout=30_000)
    page.get_by_role("button", name="Abort").click()
    page.locator("dialog[open]").get_by_role("button", name="Abort").click()
    expect(head).to_contain_text("Aborted", timeout=30_000)
    page.goto("/clusters/nodes/")
    node = small_cluster.request("GET", "/api/v1/nodes")["items"][0]["metadata"]["name"]
    expect(page.get_by_text(node).first).to_be_visible()

    for one in page.request.get("/api/v1/jobs?queue=fleet").json()["results"]:
        send(page, "DELETE", f"/api/v1/jobs/{one['uid']}")
    deadline = time.monotonic() + 30
    while found := leftovers(small_cluster, granted_namespace):
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
    send(page, "PATCH", "/api/v1/queues/fleet", {"state": "closed"})


def test_cluster_with_a_pasted_kubeconfig_is_added_and_used(
    hekla: HeklaServer, page: Page, small_cluster: ControlPlane, granted_namespace: str
) -> None:
    text = json.dumps(small_cluster.kubeconfig(small_cluster.user_token))
    page.goto("/clusters/new/")
    page.get_by_label("Name").fill("pasted")
    page.get_by_label("Kind").select_option("kubernetes")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("pasted")
    page.get_by_label("Kubeconfig", exact=True).fill(text)
    page.get_by_label("Namespace", exact=True).fill(granted_namespace)
    page.get_by_role("button", name="Check connection").click()
    expect(page.get_by_text("Hekla has all permissions that it needs.")).to_be_visible(timeout=60_000)
    page.wait_for_load_state()
    expect(page.get_by_label("Kubeconfig", exact=True)).to_have_value("")
    stored = page.evaluate("JSON.stringify({...window.sessionStorage, ...window.localStorage})")
    assert small_cluster.user_token not in stored + page.content()
    page.get_by_role("button", name="Add", exact=True).press("Enter")  # a click might miss while the page scrolls
    page.wait_for_url("**/clusters/", timeout=60_000)
    send(page, "POST", "/api/v1/queues", {"name": "pasted", "cluster": "pasted"})
    spec = job("whole", 2, "1") | {"queue": "pasted"}
    page.goto(f"/jobs/{submit(page, spec)}/")
    expect(page.locator("#job-head")).to_contain_text("Completed", timeout=60_000)
    page.goto("/clusters/pasted/")
    expect(page.locator("#cluster-health")).to_contain_text("Reachable", timeout=30_000)
    expect(page.locator("#cluster-key")).to_contain_text(small_cluster.url)
    for one in page.request.get("/api/v1/jobs?queue=pasted").json()["results"]:
        send(page, "DELETE", f"/api/v1/jobs/{one['uid']}")
    send(page, "PATCH", "/api/v1/queues/pasted", {"state": "closed"})
