"""A text file of a running job, edited in a real browser: saved by keyboard, changed by others, and offline."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.conftest import HeklaServer
from tests.e2e.people import send
from tests.e2e.test_every_page import LEVELS, _violations

pytestmark = pytest.mark.browser


def test_file_is_edited_beside_the_program(hekla: HeklaServer, page: Page) -> None:
    script = "printf 'def one():\\n    return 1\\n' > train.py; exec sleep 1000"
    task = {"name": "main", "command": ["sh", "-c", script], "resources": {"cpu": "100m"}}
    job = send(page, "POST", "/api/v1/jobs", {"name": "edited-files", "tasks": [task]})["job"]
    assert isinstance(job, dict)
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"/jobs/{job['uid']}/")
    expect(page.get_by_role("link", name="Terminal")).to_be_visible(timeout=60_000)
    page.goto(f"/jobs/{job['uid']}/?tab=files")
    page.get_by_role("link", name="train.py", exact=True).click()
    page.get_by_role("link", name="Edit", exact=True).click()
    editor, state = page.locator(".cm-content"), page.locator("[data-file-state]")
    expect(editor).to_contain_text("return 1")
    file = next(Path(hekla.home).rglob(f"{str(job['uid']).replace('-', '')}*/work/train.py"))
    editor.click()
    page.keyboard.press("Control+End")
    page.keyboard.type("# mine")
    page.keyboard.press("Control+s")
    expect(state).to_contain_text("Saved at")
    assert file.read_text() == "def one():\n    return 1\n# mine"
    assert _violations(page, LEVELS) == []

    page.context.set_offline(True)
    page.keyboard.type(" offline")
    page.keyboard.press("Control+s")
    expect(state).to_contain_text("Not saved")
    page.context.set_offline(False)
    page.wait_for_timeout(500)  # the draft is stored a moment after the last key
    file.write_text("theirs\n")
    page.reload()
    expect(page.get_by_text("Your earlier input was restored.")).to_be_visible()
    expect(editor).to_contain_text("# mine offline")
    editor.click()
    page.keyboard.press("Control+s")
    expect(page.get_by_text("The file has changed since you opened it")).to_be_visible()
    assert file.read_text() == "theirs\n"
    expect(editor).to_contain_text("# mine offline")
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert _violations(page, LEVELS) == []

    page.get_by_role("button", name="Save as a new file").click()
    expect(page.get_by_role("heading", name="train.mine.py")).to_be_visible()
    assert (file.parent / "train.mine.py").read_text().endswith("# mine offline")
    page.goto(f"/jobs/{job['uid']}/?tab=files")
    page.get_by_label("Name of the new file").fill("notes.txt")
    page.get_by_role("button", name="New text file").click()
    editor.click()
    page.keyboard.type("new")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(state).to_contain_text("Saved at")
    assert (file.parent / "notes.txt").read_text() == "new"
    send(page, "POST", f"/api/v1/jobs/{job['uid']}/actions", {"action": "AbortJob"})
