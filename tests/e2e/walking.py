"""Walking through the console by its links, as somebody does who looks into every corner."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
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
    """A page, the one that leads to it, and where it leads."""

    path: str
    route: str
    seen_on: str
    links: list[str]


def walk(page: Page) -> Iterator[Found]:
    """One page of every route that links lead to, for whoever is signed in on `page`; read, and not shown."""
    waiting, known = deque(BEGINNINGS), {*(route_of(path) for path, _ in BEGINNINGS), *FILES}
    while waiting:
        path, seen_on = waiting.popleft()
        answer = page.request.get(path)
        assert answer.status == 200, (path, seen_on)
        found = Found(path, route_of(path) or "", seen_on, _links(answer.text(), answer.url))
        yield found
        for link in found.links:
            route = route_of(link)
            if route and route not in known:
                known.add(route)
                waiting.append((link, path))


class _Links(HTMLParser):
    """Where one can go; what is downloaded is no page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        link = values.get("href") if tag == "a" and "download" not in values else None
        if link and not link.startswith(("#", "mailto:")):
            self.found.append(link)


def _links(html: str, address: str) -> list[str]:
    parser = _Links()
    parser.feed(html)
    return [urljoin(address, link) for link in parser.found]


def route_of(address: str) -> str | None:
    """The name of the route of a page; None where it is none of the console's pages."""
    try:
        match = resolve(urlsplit(address).path)
    except Resolver404:
        return None
    return None if match.namespaces and match.namespaces[0] in NO_PAGES else match.view_name
