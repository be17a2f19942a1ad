"""A terminal in a running pod, from the job's page: typed, reloaded, interrupted, ended, on a phone too."""

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.conftest import HeklaServer
from tests.e2e.people import send
from tests.e2e.test_every_page import LEVELS, _violations

pytestmark = pytest.mark.browser

HOSTILE = (
    r"printf '\033]0;<b>title</b>\007\033]52;c;aGk=\007\033]8;;javascript:alert(1)\007link\033]8;;\007"
    r"\033[6n<b>bold</b>\n'"
)


def test_terminal_is_found_typed_reloaded_and_ended(hekla: HeklaServer, page: Page) -> None:
    task = {"name": "main", "command": ["sh", "-c", "exec sleep 1000"], "resources": {"cpu": "100m"}}
    job = send(page, "POST", "/api/v1/jobs", {"name": "shell", "tasks": [task]})["job"]
    assert isinstance(job, dict)
    refusals: list[str] = []
    page.on("console", lambda message: refusals.append(message.text) if message.type == "error" else None)
    page.on("dialog", lambda dialog: refusals.append(dialog.message))
    page.goto(f"/jobs/{job['uid']}/")
    page.get_by_role("link", name="Terminal").click(timeout=60_000)

    state, rows = page.locator("[data-terminal-state]"), page.locator(".xterm-rows")
    expect(state).to_have_text("Connected")
    page.keyboard.type("echo $((40 + 2)) in $PWD\n")  # the terminal has the focus
    expect(rows).to_contain_text("42 in /home/pod")
    page.keyboard.type("printf '\\033[38;2;9;99;9mgreen\\033[0m\\n'\n")
    expect(rows.locator("span", has_text="green").first).to_be_visible()
    title = page.title()
    page.keyboard.type(f"{HOSTILE}\n")
    expect(rows).to_contain_text("link<b>bold</b>")
    assert page.title() == title
    page.keyboard.press("Control+c")  # what the terminal answered to the last sequence, as every terminal does

    page.reload()  # shows the sequence again, and does not answer again
    expect(rows).to_contain_text("42 in /home/pod")
    page.keyboard.type("sleep 500; echo $((50 + 5))\n")
    page.keyboard.press("Control+c")
    expect(rows).to_contain_text("^C")
    page.keyboard.type("echo $((60 + 6))\n")
    expect(rows).to_contain_text("66")
    assert "55" not in rows.inner_text()
    assert _violations(page, LEVELS) == []

    page.keyboard.press("Shift+Escape")
    expect(page.get_by_role("button", name="Copy")).to_be_focused()
    page.set_viewport_size({"width": 360, "height": 740})
    page.locator(".xterm").click()
    page.keyboard.type("stty size\n")
    expect(rows).to_contain_text("66")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.keyboard.type("exit 3\n")
    expect(state).to_have_text("Ended with exit code 3.")
    page.get_by_role("link", name="New terminal").click()
    expect(state).to_have_text("Connected")
    assert refusals == []
