"""Everyday tasks with the keyboard alone, with a visible focus at every step.

Only `page.keyboard` acts. After each Tab, the focused element must be in view and have a focus ring.
"""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect
from tests.e2e.conftest import HeklaServer
from tests.e2e.people import PASSWORD, drop_session, invite, join, send
from tests.support.examples import EVERY

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WIDE: ViewportSize = {"width": 1440, "height": 900}
MAX_STOPS = 150
# A transparent element is drawn by its next sibling.
IS_FOCUS_VISIBLE = """() => {
    const focused = document.activeElement;
    const drawn = focused.closest(".cm-editor")
        ?? (getComputedStyle(focused).opacity === "0" ? focused.nextElementSibling : focused);
    const rect = drawn.closest("svg") ? drawn.querySelector("rect") : null;
    const { outlineStyle, outlineWidth, boxShadow, stroke } = getComputedStyle(rect ?? drawn);
    const ringed = (outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none";
    const { top, bottom, left, right, width, height } = drawn.getBoundingClientRect();
    const isInView = bottom > 0 && right > 0 && top < innerHeight && left < innerWidth;
    return width > 1 && height > 1 && isInView && (ringed || (drawn.closest("svg") && stroke !== "none"));
}"""
FOCUSED = "() => document.activeElement.outerHTML.slice(0, 160)"
STOP = f"""selector => [
    ({FOCUSED})(), ({IS_FOCUS_VISIBLE})(), document.activeElement.matches(selector)
]"""
NEXT_LIVE = (
    "() => { window.nextLive = new Promise(done => document.addEventListener('hekla:live', done, { once: true })) }"
)


class Keys:
    """Key presses on a page. Raises AssertionError if the focus is not visible."""

    def __init__(self, page: Page) -> None:
        self.page, self.type = page, page.keyboard.type

    def press(self, key: str) -> None:
        """Press a key once the page and its scripts are loaded. Before that, elements do not listen."""
        self.page.wait_for_load_state()
        self.page.keyboard.press(key)

    def is_at(self, selector: str) -> bool:
        return bool(self.page.evaluate("selector => document.activeElement.matches(selector)", selector))

    def to(self, selector: str, key: str = "Tab") -> None:
        """Press the key until such an element has the focus."""
        passed = []
        for _stop in range(MAX_STOPS):
            self.press(key)
            focused, is_visible, is_reached = self.page.evaluate(STOP, selector)
            passed.append(focused)
            if focused.startswith("<body"):
                continue  # between the last and the first element, the browser itself has the focus
            assert is_visible, f"the focus is not visible: {focused}"
            if is_reached:
                return
        raise AssertionError(f"no key leads to {selector}; passed: {passed}")

    def write(self, selector: str, text: str) -> None:
        """Go to a field, and replace its content with this text."""
        self.to(selector)
        self.press("Control+a")
        self.type(text)

    def go(self, words: str) -> None:
        """Open a page with the search palette."""
        self.press("Control+k")
        self.type(words)
        selected = self.page.locator('#palette [aria-selected="true"]')
        expect(selected).to_contain_text(words)
        self.press("Enter")


@pytest.fixture
def nina(hekla: HeklaServer, browser: Browser, page: Page) -> Iterator[Page]:
    """A page of a person who has an account and is not signed in."""
    visitor = join(hekla, browser, invite(page), "nina", WIDE)
    drop_session(visitor)
    yield visitor
    visitor.context.close()


def test_everyday_tasks_with_the_keyboard(nina: Page) -> None:
    keys = Keys(nina)
    sign_in(keys)
    skip_to_content(keys)
    submit(keys)
    abort(keys)
    delete_from_the_list(keys)
    choose_theme_and_language(keys)
    sign_out(keys)


def sign_in(keys: Keys) -> None:
    keys.page.goto("/accounts/sign-in/")
    keys.write("[name=username]", "nina")
    keys.write("[name=password]", PASSWORD)
    keys.press("Enter")
    expect(keys.page.locator("h1")).to_have_text("Home")


def skip_to_content(keys: Keys) -> None:
    keys.to(".skip-link")
    keys.press("Enter")
    assert keys.is_at("main")
    keys.press("Tab")
    assert keys.is_at("main *")


def submit(keys: Keys) -> None:
    keys.go("Submit a job")
    expect(keys.page.locator("h1")).to_have_text("New job")
    keys.write("#id_name", "by-hand")
    keys.write("#id_tasks-0-command", "sleep 600")
    keys.write("#id_tasks-0-cpu", "50m")
    keys.to("button.button-primary")
    keys.press("Enter")
    keys.page.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}/"))
    expect(keys.page.locator("#job-head")).to_contain_text("Running", timeout=30_000)


def abort(keys: Keys) -> None:
    dialog, button = keys.page.locator("#confirm-dialog[open]"), "#job-head .button-danger"
    keys.to(button)
    check_focus_survives_live_changes(keys, button)
    keys.press("Enter")
    expect(dialog).to_be_visible()
    keys.press("Escape")
    expect(dialog).to_be_hidden()
    assert keys.is_at(button), keys.page.evaluate(FOCUSED)
    keys.press("Space")
    expect(dialog).to_be_visible()
    keys.to("[data-confirm-go]")
    keys.press("Enter")
    expect(keys.page.locator("#job-head")).to_contain_text("Aborted", timeout=30_000)


def check_focus_survives_live_changes(keys: Keys, selector: str) -> None:
    """Change the job through REST, and check that the live update keeps the focus."""
    uid = keys.page.url.split("/")[4]
    keys.page.evaluate(NEXT_LIVE)
    send(keys.page, "PATCH", f"/api/v1/jobs/{uid}/priority", {"priority": 3})
    keys.page.evaluate("() => window.nextLive")
    assert keys.is_at(selector), keys.page.evaluate(FOCUSED)


def delete_from_the_list(keys: Keys) -> None:
    keys.go("Jobs")
    keys.page.wait_for_url("**/jobs/")
    keys.press("/")
    assert keys.is_at("[data-list-search]")
    keys.type("by-hand")
    keys.press("Enter")
    keys.page.wait_for_url(re.compile("q=by-hand"))
    expect(keys.page.locator("#jobs tbody tr")).to_have_count(1)
    keys.press("j")
    assert keys.is_at("#jobs tbody a")
    keys.press("x")
    expect(keys.page.locator("#jobs-act")).to_contain_text("1 selected")
    keys.to("#jobs-act [value=Delete]", "Shift+Tab")
    keys.press("Enter")
    keys.to("[data-confirm-go]")
    keys.press("Enter")
    expect(keys.page.locator("#bulk-report")).to_contain_text("1 job is deleted.")
    expect(keys.page.locator("#jobs tbody tr")).to_have_count(0)


def choose_theme_and_language(keys: Keys) -> None:
    keys.press("?")
    expect(keys.page.locator("#keys-dialog")).to_be_visible()
    keys.press("Escape")
    expect(keys.page.locator("#keys-dialog")).to_be_hidden()
    keys.to(".person > summary")
    keys.press("Enter")
    keys.to("[name=theme]:checked")
    keys.press("ArrowRight")
    keys.press("ArrowRight")
    expect(keys.page.locator("html")).to_have_attribute("data-theme", "dark")
    keys.press("Escape")
    assert keys.is_at(".person > summary"), keys.page.evaluate(FOCUSED)
    keys.press("Space")
    keys.to(".person button[name=language][value=zh-hans]")
    keys.press("Enter")
    expect(keys.page.locator("html")).to_have_attribute("lang", "zh-hans")
    expect(keys.page.locator("html")).to_have_attribute("data-theme", "dark")


def sign_out(keys: Keys) -> None:
    keys.to(".person > summary", "Shift+Tab")
    keys.press("Enter")
    keys.to(".person form[action*='sign-out'] button")
    keys.press("Enter")
    keys.page.wait_for_url(re.compile("/accounts/sign-in/"))


PATHS = [
    "/",
    "/jobs/",
    "/jobs/submit/?preset=distributed",
    "/jobs/submit/yaml/",
    "/queues/",
    "/clusters/nodes/",
    "/help/jobs/",
]


@pytest.mark.parametrize("path", PATHS[::EVERY])
def test_tab_moves_through_a_page_and_out_of_it(page: Page, path: str) -> None:
    page.set_viewport_size(WIDE)
    page.goto(path, wait_until="networkidle")
    keys = Keys(page)
    keys.to(".skip-link")
    keys.to("main :is(a, button, input, select, textarea, summary)")
    keys.to(".skip-link")
