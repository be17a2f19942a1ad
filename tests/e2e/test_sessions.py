"""A port of a running pod in the browser: opened from the job's page on an origin of its own, and ended."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.conftest import HeklaServer, free_port
from tests.e2e.people import send
from tests.e2e.test_every_page import LEVELS, _violations
from tests.support import tool_server

pytestmark = pytest.mark.browser


def test_port_is_opened_on_its_own_origin_and_ended(hekla: HeklaServer, page: Page) -> None:
    port = free_port()
    script = f"import os\nfrom tool_server import serve\nserve(os.environ['HEKLA_POD_ADDRESS'], {port})\n"
    files = {"serve.py": script, "tool_server.py": Path(tool_server.__file__).read_text()}
    task = {"name": "main", "command": ["sh", "-c", "exec python serve.py"], "ports": {"web": port}}
    job = send(page, "POST", "/api/v1/jobs", {"name": "served", "files": files, "tasks": [task]})["job"]
    assert isinstance(job, dict)
    page.goto(f"/jobs/{job['uid']}/")
    page.get_by_role("link", name="Tools").click(timeout=60_000)
    assert _violations(page, LEVELS) == []
    tools = page.url
    page.get_by_role("button", name=f"web ({port})").click()
    page.wait_for_url(f"http://*.localhost:{hekla.port}/", timeout=20_000)
    expect(page.locator("#said")).to_have_text("echo hello")
    expect(page.locator("#cookies")).to_contain_text("mine=1")
    headers = json.loads(page.locator("#cookies").inner_text())["headers"]
    assert [value for name, value in headers if name == "cookie"] == ["a=b; mine=1"]
    assert [value for name, value in headers if name == "host"] == [f"localhost:{port}"]
    session = page.url
    names = {cookie["name"]: cookie["domain"] for cookie in page.context.cookies()}
    assert names["hekla_session"] == "127.0.0.1"
    assert all(not domain.startswith(".") for domain in names.values())

    other = page.context.new_page()
    other.goto(tools)
    expect(other.get_by_role("row", name=f"Port {port}")).to_be_visible()
    assert _violations(other, LEVELS) == []
    other.set_viewport_size({"width": 360, "height": 740})
    assert other.evaluate("document.documentElement.scrollWidth <= innerWidth")
    other.get_by_role("button", name="End").click()
    expect(page.locator("#said")).to_have_text("closed 1001", timeout=8_000)
    other.goto(session)
    expect(other.get_by_text("Open this session from the console.")).to_be_visible()
    other.close()
    send(page, "POST", f"/api/v1/jobs/{job['uid']}/actions", {"action": "AbortJob"})
