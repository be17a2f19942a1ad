"""The scripts of the editor of files, and of its drafts, in a real Chromium."""

import pytest
from playwright.sync_api import expect
from tests.frontend.script_pages import page, shared_page, show, site, until

__all__ = ["page", "shared_page", "site"]

pytestmark = [pytest.mark.browser, pytest.mark.slow]
EDITOR = """<form data-file-form data-draft="edit-1" method="post" action="/save" {attributes}>
<input type="hidden" name="base" value="a" data-restored>
<div class="field"><textarea id="text" name="text" data-file-editor="/none.js">old</textarea></div>
<button name="do" value="save" data-file-save>Save</button><span data-file-state></span></form>
<form data-sign-out method="post" action="/save"><button>Sign out</button></form>"""
"""Without CodeMirror, which is not what this is about."""
DRAFT = "sessionStorage.getItem('hekla.draft.edit-1')"


def test_refusal_without_a_page_of_the_text_leaves_it_in_place(page):
    """As when the job was deleted, or the session has another token now."""
    page.route("**/none.js", lambda route: route.abort())
    page.route("**/save", lambda route: route.fulfill(status=403, body="no"))
    show(page, EDITOR.format(attributes=""))
    page.fill("textarea", "mine")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("[data-file-state]")).to_have_text("file_refused")
    assert page.input_value("textarea") == "mine"
    until(page, f"JSON.parse({DRAFT})?.sent === false")
    page.unroute_all()


def test_drafts_are_dropped_at_the_sign_out_and_after_saving(page):
    page.route("**/none.js", lambda route: route.abort())
    page.route("**/save", lambda route: route.fulfill(body="<p>Out</p>", content_type="text/html"))
    show(page, EDITOR.format(attributes=""))
    page.fill("textarea", "mine")
    until(page, f"{DRAFT}?.includes('mine')")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_selector("text=Out")
    assert page.evaluate(DRAFT) is None
    show(page, EDITOR.format(attributes="data-answered"), path="/?saved=yes")
    until(page, "!location.search")
    assert page.evaluate(DRAFT) is None
    page.unroute_all()
