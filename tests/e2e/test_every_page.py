"""Every page that one can come to by following links: without a fault, for everybody's eyes, on every width.

The pages are found, not listed: from the first page on, one of each route. So a page that nothing leads to is found
missing, and one that comes new is looked at from its first day.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page
from tests.e2e.conftest import Running
from tests.e2e.people import send
from tests.e2e.walking import FILES, NO_PAGES, Found, walk

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NARROWEST = {"width": 320, "height": 800}
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
LOOKS: list[dict[str, Any]] = [
    {"size": {"width": 1440, "height": 900}, "scheme": "light", "language": "en", "rules": LEVELS},
    {
        "size": {"width": 360, "height": 780}, "scheme": "dark", "language": "zh-hans",
        "rules": ["color-contrast", "target-size", "html-has-lang", "html-lang-valid", "scrollable-region-focusable"],
    },
]  # fmt: skip
"""The same elements twice: the second time, what depends on size, colours and language is looked at."""
MAIN = {"command": ["echo", "{{ n }}"], "name": "main", "resources": {"cpu": "10m"}}
JOB = {"name": "kept", "tasks": [MAIN | {"command": ["echo", "here"]}]}
THINGS = {
    "templates": JOB,
    "flows": {"name": "chain", "steps": [{"name": "first", "job": JOB}]},
    "batches": {"name": "swept", "parameters": {"n": ["1", "2"]}, "job": {"tasks": [MAIN]}},
    "schedules": {"name": "nightly", "cron": "@daily", "job": JOB},
    "presets": {"name": "usual", "spec": JOB},
    "gallery": {"title": "Usual", "spec": JOB},
    "priority-classes": {"name": "kept-back", "value": 10, "is_offered": False},
    "departments": {"slug": "science", "name": "Science"},
    "clusters": {"name": "beyond", "kind": "simulated", "config": {"nodes": []}},
    "queues": {"name": "beyond", "cluster": "beyond"},
    "spans": {"name": "over", "members": ["beyond", "demo-vision"]},
}
"""One of each that a page is about, made through REST."""


@pytest.fixture(scope="module")
def eyes(hekla: Running, browser: Browser, signed_in: dict[str, object]) -> Iterator[Page]:
    """A page of the first admin."""
    context = browser.new_context(storage_state=signed_in, base_url=hekla.url, reduced_motion="reduce")
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def pages(eyes: Page) -> list[Found]:
    """One of every route that links lead to."""
    eyes.goto("/")
    for kind, document in THINGS.items():
        send(eyes, "POST", f"/api/v1/{kind}", document)
    eyes.goto("/accounts/new/")
    eyes.locator("#id_username").fill("vera")
    with eyes.expect_navigation():
        eyes.get_by_role("button", name="Add").click()
    return list(walk(eyes))


def _show(page: Page, path: str, look: dict[str, Any]) -> None:
    page.set_viewport_size(look["size"])
    page.emulate_media(color_scheme=look["scheme"], reduced_motion="reduce")
    origin = re.match(r"https?://[^/]+", page.url)
    assert origin
    page.context.add_cookies([{"name": "django_language", "value": look["language"], "url": origin[0]}])
    page.goto(path)


def _violations(page: Page, rules: list[str]) -> list[str]:
    """What axe finds; but the squares of a gang are small, and the same links stand in the list of pods."""
    found = Axe().run(page, options={"runOnly": rules, "resultTypes": ["violations"]}).response["violations"]
    told = [f"{one['id']}: {node['target']} {node['html'][:120]}" for one in found for node in one["nodes"][:3]]
    return [problem for problem in told if not (problem.startswith("target-size") and ".gang-pods" in problem)]


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look["language"])
def test_no_page_keeps_anybody_out_or_is_wider_than_a_phone(
    eyes: Page, pages: list[Found], look: dict[str, Any]
) -> None:
    wrong, rules = [], look["rules"]
    for found in pages:
        _show(eyes, found.path, look)
        wrong += [f"{found.route}: {problem}" for problem in _violations(eyes, rules)]
        eyes.set_viewport_size(NARROWEST)
        if (width := eyes.evaluate("document.documentElement.scrollWidth")) > NARROWEST["width"]:
            wrong.append(f"{found.route}: {width} px wide")
    assert not wrong, "\n".join(wrong)


def test_links_lead_to_every_page(pages: list[Found]) -> None:
    from hekla.pages.access_matrix import declared

    no_pages = {
        "health", "live", "ready",  # for programs
        "favicon", "set_language", "accounts:sign_in", "accounts:use_link",  # before one is in
        "home_needs", "jobs:timeline", "job_unblock", "exposure",  # parts of pages
        "usage:job", "usage:pod", "notifications:bell",
        "invitations:sign_up", "accounts:second_step", "accounts:prove",  # on the way in
        "accounts:identities",  # where there is a directory of people
        "notifications:job",  # a form within the page of a job
        "demonstrations:detail",  # once it was played
    }  # fmt: skip
    opened_by_admins = {
        name
        for name, route in declared().items()
        if route.get and route.get["platform_admin"] == "ok" and not name.startswith(tuple(f"{ns}:" for ns in NO_PAGES))
    }
    missing = sorted(opened_by_admins - no_pages - FILES - {found.route for found in pages})
    assert not missing, missing
