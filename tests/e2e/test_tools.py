"""JupyterLab and TensorBoard in a running pod: started, opened, used and ended. The environment takes long to build."""

import json
import re
import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.e2e.conftest import HeklaServer, sign_in
from tests.e2e.people import send
from tests.support.browser import SIZE

pytestmark = [pytest.mark.browser, pytest.mark.thorough]
BUILD_MS, START_MS = 400_000, 120_000
EVENTS = """
import time
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

writer = EventFileWriter("runs")
for step in range(20):
    value = Summary.Value(tag="loss", simple_value=1 / (1 + step))
    writer.add_event(Event(step=step, wall_time=time.time(), summary=Summary(value=[value])))
writer.close()
"""
"""A program that writes curves for TensorBoard."""
WHOLE = {
    "cells": [{"cell_type": "code", "metadata": {}, "source": "get_ipython().user_ns['x'] = 42\nprint('x is', x)"}],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 4,
}
"""A notebook that only IPython can run."""


def test_jupyterlab_and_tensorboard_run_beside_the_program(hekla: HeklaServer, page: Page) -> None:
    job, tools = _pod_with_both(page)

    page.get_by_role("button", name="TensorBoard").click()
    page.wait_for_url(re.compile(r"http://\w+\.localhost:\d+/"), timeout=START_MS)
    expect(page.locator("scalar-card", has_text="loss").first).to_be_visible(timeout=START_MS)
    _end(page, tools, "TensorBoard")
    _timed("from the click to JupyterLab, first start", lambda: _open_jupyterlab(page))
    _end(page, tools, "JupyterLab")
    _timed("from the click to JupyterLab, again", lambda: _open_jupyterlab(page))
    _run_a_cell(page)
    _submit_from_the_notebook(page)
    _run_a_whole_notebook(page, hekla)
    _restart_the_kernel(page)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Upload Files").click()
    chooser.value.set_files({"name": "up.txt", "mimeType": "text/plain", "buffer": b"from the browser"})
    expect(page.locator(".jp-DirListing-item", has_text="up.txt")).to_be_visible(timeout=START_MS)
    page.get_by_role("button", name="New Launcher", exact=False).first.click()
    page.locator(".jp-LauncherCard", has_text="Terminal").click()
    page.locator(".jp-Terminal .xterm").click(timeout=START_MS)
    page.keyboard.type("cat up.txt > typed.txt\n")
    expect(page.locator(".jp-DirListing-item", has_text="typed.txt")).to_be_visible(timeout=START_MS)
    token = page.evaluate("document.cookie")
    assert "hekla" not in token
    page.goto(f"{hekla.url}/jobs/{job}/")
    _timed("from the click to the first answer of a terminal", lambda: _open_a_terminal(page))
    send(page, "POST", f"/api/v1/jobs/{job}/actions", {"action": "AbortJob"})


@pytest.fixture
def shared(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[tuple[HeklaServer, Page]]:
    """A console whose sessions are at paths of one host."""
    home = tmp_path_factory.mktemp("shared") / "home"
    server = HeklaServer(home, HEKLA_WORKBENCH_HOST="tools.localhost")
    context = browser.new_context(base_url=server.url, viewport=SIZE)
    try:
        page = context.new_page()
        sign_in(server, page, server.sign_in_link)
        yield server, page
    finally:
        context.close()
        server.stop()
        server.end_pods()


def test_both_run_at_paths_of_a_shared_host_one_at_a_time(shared: tuple[HeklaServer, Page]) -> None:
    server, console = shared
    _job, tools = _pod_with_both(console)
    place = re.compile(rf"http://tools\.localhost:{server.port}/[a-z2-7]{{26}}/")

    def opened(tool: str) -> Page:
        page = console.context.new_page()
        page.goto(tools)
        page.get_by_role("button", name=tool).click()
        expect(page.get_by_text("All sessions of this console share the host")).to_be_visible(timeout=START_MS)
        page.get_by_role("button", name="Open now").click()
        page.wait_for_url(place, timeout=START_MS)
        page.get_by_role("button", name="Open now").click()
        return page

    lab = opened("JupyterLab")
    expect(lab.get_by_text("made.txt")).to_be_visible(timeout=START_MS)
    _run_a_cell(lab)
    lab.evaluate("localStorage.setItem('left', 'behind')")
    worker = "navigator.serviceWorker.register('api/worker.js').then(() => 'registered', (error) => error.name)"
    assert lab.evaluate(worker) in ("SecurityError", "TypeError")
    board = opened("TensorBoard")
    expect(board.locator("scalar-card", has_text="loss").first).to_be_visible(timeout=START_MS)
    assert board.evaluate("localStorage.getItem('left')") is None
    status = "fetch(address).then((answer) => answer.status)"
    assert board.evaluate(f"(address) => {status}", lab.url) == 403
    lab.reload()
    expect(lab.get_by_text("Open this session from the console.")).to_be_visible()


def _pod_with_both(page: Page) -> tuple[object, str]:
    """The uid of a job whose pod has JupyterLab and TensorBoard, and the URL of its tools."""
    page.goto("/clusters/environments/new/")
    page.get_by_label("Name").fill("lab")
    page.get_by_label("Requirements").fill("jupyterlab\nipykernel\ntensorboard")
    page.get_by_role("button", name="Add").click()
    command = ["sh", "-c", "python events.py && echo 42 > made.txt; exec sleep 100000"]
    task = {"name": "main", "command": command, "environment": "lab"}
    document = {"name": "notebook", "tasks": [task], "files": {"events.py": EVENTS}}
    job = send(page, "POST", "/api/v1/jobs", document)["job"]
    assert isinstance(job, dict)
    page.goto(f"/jobs/{job['uid']}/")
    page.get_by_role("link", name="Tools").click(timeout=BUILD_MS)
    return job["uid"], page.url


def _run_a_cell(page: Page) -> None:
    """In a new notebook."""
    page.locator(".jp-LauncherCard[data-category='Notebook']").first.click()
    expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible(timeout=START_MS)
    page.locator(".jp-Notebook .cm-content").first.click()
    page.keyboard.type("print(6 * 7, open('made.txt').read())")
    page.keyboard.press("Shift+Enter")
    expect(page.locator(".jp-OutputArea-output").first).to_contain_text("42 42", timeout=START_MS)


def _submit_from_the_notebook(page: Page) -> None:
    """The magic in the next cell, then the button in the toolbar."""
    cell = page.locator(".jp-Notebook .jp-CodeCell").nth(1)
    cell.locator(".cm-content").click()
    page.keyboard.insert_text("%%hekla --name from-cell --cpus 1\nprint('in', 'a', 'job')")
    page.keyboard.press("Shift+Enter")
    expect(cell.locator(".jp-OutputArea").first).to_contain_text("from-cell: completed", timeout=START_MS)
    expect(cell.locator(".jp-OutputArea").first).to_contain_text("in a job")
    page.get_by_role("button", name="Submit as job").click()
    page.get_by_label("Name").fill("No such name")
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.locator("dialog .jp-Dialog-body [role=alert], .jp-Dialog [role=alert]")).to_be_visible(timeout=START_MS)
    expect(page.get_by_label("Name")).to_have_value("No such name")
    page.get_by_label("Name").fill("from-button")
    page.get_by_role("button", name="Submit", exact=True).click()
    link = page.get_by_role("link", name="from-button")
    expect(link).to_have_attribute("href", re.compile(r"/jobs/[0-9a-f-]{36}/$"), timeout=START_MS)
    page.get_by_role("button", name="OK").click()


def _timed(what: str, work: Callable[[], None]) -> None:
    """Print how long it takes: `pytest -rP` shows it."""
    begin = time.monotonic()
    work()
    print(f"{what}: {time.monotonic() - begin:.2f} s")


def _open_jupyterlab(page: Page) -> None:
    """Until its list of files and its launcher can be used."""
    page.get_by_role("button", name="JupyterLab").click()
    page.wait_for_url(re.compile(r"http://\w+\.localhost:\d+/lab"), timeout=START_MS)
    expect(page.get_by_text("made.txt")).to_be_visible(timeout=START_MS)
    expect(page.locator(".jp-LauncherCard[data-category='Notebook']").first).to_be_visible(timeout=START_MS)


def _open_a_terminal(page: Page) -> None:
    """Until it has run a command."""
    page.get_by_role("link", name="Terminal").click()
    expect(page.locator("[data-terminal-state]")).to_have_text("Connected")
    expect(page.locator(".xterm-rows")).to_contain_text("$")
    page.keyboard.type("echo $((40 + 2))\n")
    expect(page.locator(".xterm-rows")).to_contain_text("42")


def _end(page: Page, tools: str, name: str) -> None:
    page.goto(tools)
    page.get_by_role("row", name=name).get_by_role("button", name="End").click()
    expect(page.get_by_text("No open sessions.")).to_be_visible()


def _run_a_whole_notebook(page: Page, hekla: HeklaServer) -> None:
    """As a job, where nbclient executes it and saves its outputs. The client of the session finds the job."""
    cell = page.locator(".jp-Notebook .jp-CodeCell").nth(2)
    cell.locator(".cm-content").click()
    lines = (
        "from pathlib import Path",
        "from hekla.client import Client",
        f"Path('whole.ipynb').write_text({json.dumps(WHOLE)!r})",
        "job = %hekla whole.ipynb --cpus 1",
        "print('found:', Client().job(job.uid)['phase'])",
    )
    page.keyboard.insert_text("\n".join(lines))
    page.keyboard.press("Shift+Enter")
    expect(cell.locator(".jp-OutputArea").first).to_contain_text("found: completed", timeout=START_MS)
    outputs = [path.read_text() for path in hekla.home.rglob("whole.ipynb")]
    assert [text for text in outputs if "x is 42" in text]


def _restart_the_kernel(page: Page) -> None:
    """Afterwards it runs cells again, and knows none of the variables."""
    page.get_by_role("button", name="Restart the kernel").first.click()
    page.locator(".jp-Dialog .jp-mod-accept").click()
    cell = page.locator(".jp-Notebook .jp-CodeCell").nth(3)
    cell.locator(".cm-content").click()
    page.keyboard.insert_text("print('job' in globals(), 'after', 'restart')")
    page.keyboard.press("Shift+Enter")
    expect(cell.locator(".jp-OutputArea").first).to_contain_text("False after restart", timeout=START_MS)
