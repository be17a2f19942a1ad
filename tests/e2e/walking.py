"""Walking through the console by its links, as somebody does who looks into every corner."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from django.urls import Resolver404, resolve
from playwright.sync_api import Page

NO_PAGES = ("api", "openpai", "live")
BEGINNINGS = (
    ("/", ""),
    ("/design/", ""),
    ("/jobs/submit/yaml/", "/jobs/submit/"),  # by a tab that takes the draft along
)
FILES = {"jobs:list_file", "jobs:manifest", "flows:manifest", "flows:template_manifest", "schedules:manifest"}


@dataclass(frozen=True)
class Found:
    """A page, and the one that leads to it."""

    path: str
    route: str
    seen_on: str


def walk(page: Page) -> Iterator[Found]:
    """One page of every route that links lead to; each is shown while it is told."""
    waiting, known = deque(BEGINNINGS), {*(route_of(path) for path, _ in BEGINNINGS), *FILES}
    while waiting:
        path, seen_on = waiting.popleft()
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 200, (path, seen_on)
        yield Found(path, route_of(path) or "", seen_on)
        for link in links(page):
            route = route_of(link)
            if route and route not in known:
                known.add(route)
                waiting.append((link, path))


def links(page: Page) -> list[str]:
    """Where one can go from here; what is downloaded is no page."""
    found = page.eval_on_selector_all("a[href]:not([download])", "all => all.map(one => one.getAttribute('href'))")
    return [urljoin(page.url, link) for link in found if link and not link.startswith(("#", "mailto:"))]


def route_of(address: str) -> str | None:
    """The name of the route of a page; None where it is none of the console's pages."""
    try:
        match = resolve(urlsplit(address).path)
    except Resolver404:
        return None
    return None if match.namespaces and match.namespaces[0] in NO_PAGES else match.view_name
