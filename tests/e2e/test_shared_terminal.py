"""A terminal shared with a viewer, from the invitation to the replay of its recording, on a phone too."""

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.e2e.conftest import HeklaServer
from tests.e2e.people import invite, join, send
from tests.e2e.test_every_page import LEVELS, _violations

pytestmark = pytest.mark.browser
HOSTILE = r"printf '\033]0;<b>title</b>\007\033]8;;javascript:alert(1)\007<i>link</i>\033]8;;\007\n'"


def test_viewer_accepts_watches_and_the_recording_is_replayed(hekla: HeklaServer, page: Page, browser: Browser) -> None:
    task = {"name": "main", "command": ["sh", "-c", "exec sleep 1000"], "resources": {"cpu": "100m"}}
    job = send(page, "POST", "/api/v1/jobs", {"name": "shared", "tasks": [task]})["job"]
    assert isinstance(job, dict)
    guest = join(hekla, browser, invite(page, role="viewer"), "velma")
    refusals: list[str] = []
    for one in (page, guest):
        one.on("console", lambda message: refusals.append(message.text) if message.type == "error" else None)
    page.goto(f"/jobs/{job['uid']}/")
    page.get_by_role("link", name="Terminal").click(timeout=60_000)
    rows = page.locator(".xterm-rows")
    expect(page.locator("[data-terminal-state]")).to_have_text("Connected")
    page.keyboard.type("echo $((40 + 2))\n")
    expect(rows).to_contain_text("42")
    place = page.url
    page.get_by_role("link", name="Share", exact=True).click()
    page.get_by_label("User name").fill("velma")
    page.get_by_label("Role", exact=True).select_option("observer")
    assert _violations(page, LEVELS) == []
    page.get_by_role("button", name="Invite").click()
    expect(page.get_by_text("not accepted yet")).to_be_visible()
    page.goto(place)

    guest.goto("/shared/")
    assert _violations(guest, LEVELS) == []
    assert guest.evaluate("document.documentElement.scrollWidth <= innerWidth")
    guest.get_by_role("button", name="Accept").click()
    guest.get_by_role("button", name="Open").click()
    expect(guest.locator("[data-terminal-state]")).to_have_text("Watching. You are invited as an observer.")
    expect(guest.locator(".xterm-rows")).to_contain_text("42")
    expect(guest.get_by_role("button", name="Take the keyboard")).to_be_hidden()
    expect(page.locator("[data-terminal-recorded]")).to_be_visible()
    expect(page.locator("[data-terminal-people]")).to_contain_text("velma (watches)")
    page.locator(".xterm").click()
    page.keyboard.type(f"{HOSTILE}; echo $((50 + 5))\n")
    expect(guest.locator(".xterm-rows")).to_contain_text("55")
    page.keyboard.type("exit\n")
    expect(guest.locator("[data-terminal-state]")).to_have_text("Ended with exit code 0.")

    _replay(page, str(job["uid"]))
    assert refusals == []


def _replay(page: Page, uid: str) -> None:
    """Play the recording, save a part, and look at it on a phone."""
    rows = page.locator(".xterm-rows")
    page.goto(f"/jobs/{uid}/?tab=pods")
    page.locator("#job-recordings tbody a").click()
    title = page.title()
    page.get_by_role("button", name="Play").click()
    expect(page.locator("[data-replay-state]")).to_have_text("End of the recording", timeout=30_000)
    expect(rows).to_contain_text("55")
    expect(rows).to_contain_text("<i>link</i>")
    assert page.title() == title
    expect(page.locator(".replay-lines")).to_contain_text("<i>link</i>")
    page.get_by_role("button", name="To here").click()
    page.get_by_label("From", exact=True).fill("0")
    assert _violations(page, LEVELS) == []
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator(".replay-screen").focus()
    page.keyboard.press("Home")
    expect(page.locator("[data-replay-time]")).to_contain_text("0:00 /")
    page.get_by_role("button", name="Save part").click()
    expect(page.get_by_text("Part of another recording")).to_be_visible()
    page.goto(f"{page.url}#t=0.1")
    expect(rows).to_be_visible()
