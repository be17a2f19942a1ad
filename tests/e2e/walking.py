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
PARTS = ("hx-get", "data-refresh")
FILES = {"jobs:list_file", "jobs:manifest", "flows:manifest", "flows:template_manifest", "schedules:manifest"}


@dataclass(frozen=True)
class Found:
    """A page, the one that leads to it, where it leads, and the addresses of the parts that it brings in later."""

    path: str
    route: str
    seen_on: str
    html: str
    links: list[str]
    parts: list[str]


def walk(page: Page) -> Iterator[Found]:
    """One page of every route that links lead to, for whoever is signed in on `page`; read, and not shown."""
    waiting, known = deque(BEGINNINGS), {*(route_of(path) for path, _ in BEGINNINGS), *FILES}
    while waiting:
        path, seen_on = waiting.popleft()
        answer = page.request.get(path)
        assert answer.status == 200, (path, seen_on)
        html = answer.text()
        there = _Addresses(html, answer.url)
        found = Found(path, route_of(path) or "", seen_on, html, there.links, there.parts)
        yield found
        for link in found.links:
            route = route_of(link)
            if route and route not in known:
                known.add(route)
                waiting.append((link, path))


class _Addresses(HTMLParser):
    """Where one can go from a page (what is downloaded is no page), and what the page brings in by itself."""

    def __init__(self, html: str, page: str) -> None:
        super().__init__()
        self._page = page
        self.links: list[str] = []
        self.parts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        link = values.get("href") if tag == "a" and "download" not in values else None
        if link and not link.startswith(("#", "mailto:")):
            self.links.append(urljoin(self._page, link))
        self.parts += [urljoin(self._page, part) for name in PARTS if (part := values.get(name))]


def route_of(address: str) -> str | None:
    """The name of the route of a page; None where it is none of the console's pages."""
    try:
        match = resolve(urlsplit(address).path)
    except Resolver404:
        return None
    return None if match.namespaces and match.namespaces[0] in NO_PAGES else match.view_name
