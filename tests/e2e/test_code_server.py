"""VS Code in a running pod: a real code-server is started, edits and saves a file, and runs a command in its terminal.

It is built once by npm and stays in the user's cache. Its scripts that download from elsewhere are left out; what it
needs here is compiled.
"""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.conftest import HeklaServer
from tests.e2e.people import send

pytestmark = [pytest.mark.browser, pytest.mark.thorough, pytest.mark.timeout(1800)]
VERSION, NODE = "4.99.4", "v20."
START_MS = 120_000


@pytest.fixture(scope="module")
def node_modules() -> Path:
    """The folder with code-server, as `npm install code-server` makes it."""
    if shutil.which("npm") is None or not _output("node", "--version").startswith(NODE):
        pytest.skip(f"code-server {VERSION} needs npm and Node {NODE}")
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = caches / "hekla-code-server" / VERSION
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        install, editor = ("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"), "code-server/lib/vscode"
        _run(folder, *install, f"code-server@{VERSION}")
        _run(folder, "npm", "rebuild", "argon2")
        _run(folder / "node_modules" / editor, *install, "--omit=dev")
        _run(folder / "node_modules" / editor, "npm", "rebuild", "node-pty", "@vscode/spdlog", "native-watchdog")
        (folder / "ready").touch()
    return folder / "node_modules"


def _run(folder: Path, *command: str) -> None:
    environment = {**os.environ, "npm_config_yes": "true"}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)


def _until(page: Page, holds: Callable[[], bool]) -> None:
    """Wait until it holds, while the browser goes on."""
    deadline = time.monotonic() + START_MS / 1000
    while not holds():
        assert time.monotonic() < deadline
        page.wait_for_timeout(100)


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def test_editor_edits_a_file_of_the_pod_and_runs_commands_in_it(
    hekla: HeklaServer, page: Page, node_modules: Path
) -> None:
    task = {"name": "main", "command": ["sh", "-c", "echo 42 > for-vs-code.txt; exec sleep 100000"]}
    job = send(page, "POST", "/api/v1/jobs", {"name": "edited", "tasks": [task]})["job"]
    assert isinstance(job, dict)
    page.goto(f"/jobs/{job['uid']}/")
    page.get_by_role("link", name="Tools").click(timeout=START_MS)
    page.get_by_role("button", name="VS Code (code-server)").click()
    expect(page.get_by_text("This pod has no code-server on its PATH")).to_be_visible(timeout=START_MS)
    made = next(hekla.home.rglob("for-vs-code.txt"))
    _run(made.parent, "cp", "-a", str(node_modules), ".")

    page.get_by_role("link", name="Open the tools of this pod").first.click()
    page.get_by_role("button", name="VS Code (code-server)").click()
    page.wait_for_url(re.compile(r"http://\w+\.localhost:\d+/\?folder="), timeout=START_MS)
    page.get_by_role("treeitem", name="for-vs-code.txt").dblclick(timeout=START_MS)
    page.locator(".monaco-editor .view-lines", has_text="42").first.click(timeout=START_MS)
    page.keyboard.press("Control+End")
    page.keyboard.type("from the browser")
    page.keyboard.press("Control+s")
    _until(page, lambda: made.read_text() == "42\nfrom the browser")

    page.keyboard.press("Control+`")
    expect(page.locator(".terminal .xterm-helper-textarea").first).to_be_focused(timeout=START_MS)
    typed = made.with_name("typed.txt")
    page.keyboard.type("echo $((6 * 7)) > typed.txt\n")
    _until(page, lambda: typed.exists() and typed.read_text() == "42\n")
    assert not any("code-server" in str(cookie.get("name")) for cookie in page.context.cookies())
    page.goto(f"{hekla.url}/jobs/{job['uid']}/")
    send(page, "POST", f"/api/v1/jobs/{job['uid']}/actions", {"action": "AbortJob"})
