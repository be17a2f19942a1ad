"""The script of uploads in a real Chromium."""

import pytest
from playwright.sync_api import expect
from tests.frontend.script_pages import page, shared_page, show, site

__all__ = ["page", "shared_page", "site"]

pytestmark = [pytest.mark.browser, pytest.mark.slow]
BOX = """<section data-upload="/api/v1/up" data-folder=""><input type="file" data-upload-choose>
<ul data-upload-list></ul><template><li><span data-upload-name></span><progress data-upload-bar></progress>
<span data-upload-state></span><button type="button" data-upload-replace hidden>Replace</button>
<button type="button" data-upload-cancel>Cancel</button></li></template></section>"""


def test_upload_that_is_refused_at_its_end_offers_replace(page):
    """The answer to HEAD has no body, so the reason comes from another request."""
    requests = []

    def answer(route):
        method = route.request.method
        requests.append(method)
        if method == "GET":
            route.fulfill(json={"uploads": []})
        elif method == "POST":
            route.fulfill(status=201, headers={"Location": "/api/v1/uploads/u"}, json={})
        elif method == "HEAD":
            route.fulfill(status=409)
        else:
            route.fulfill(status=409, json={"code": "file_exists", "detail": "A file of that name exists."})

    page.route("**/api/**", answer)
    show(page, BOX)
    page.set_input_files("[data-upload-choose]", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"abc"})
    expect(page.get_by_role("button", name="Replace")).to_be_visible()
    expect(page.locator("[data-upload-state]")).to_have_text("A file of that name exists.")
    assert requests[-2:] == ["HEAD", "PATCH"]
    page.unroute("**/api/**")
