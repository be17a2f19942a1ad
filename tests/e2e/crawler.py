"""Crawl the console by its links."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

from django.urls import Resolver404, resolve
from playwright.sync_api import APIResponse, Page, Response

NON_PAGE_NAMESPACES = ("api", "openpai", "live")
START_PAGES = (
    ("/", ""),
    ("/design/", ""),
    ("/jobs/submit/yaml/", "/jobs/submit/"),  # a tab of the form leads to it, and carries the draft
)
PARTS = ("hx-get", "data-refresh")
FILES = {
    "audit_file",
    "decisions:file",
    "operations:cost_file",
    "operations:failures_file",
    "operations:gpu_time_file",
    "operations:overview_file",
    "operations:queues_file",
    "operations:sessions_file",
    "reports:html",
    "reports:pdf",
    "operations:waiting_file",
    "batches:table",
    "files:archive",
    "files:image",
    "runs:table",
    "sharing:cast",
    "jobs:list_file",
    "jobs:manifest",
    "flows:manifest",
    "flows:template_manifest",
    "schedules:manifest",
}


@dataclass(frozen=True)
class CrawledPage:
    """A page, the page that links to it, its links, and the addresses of the parts that it loads later."""

    path: str
    route: str
    linked_from: str
    html: str
    links: list[str]
    parts: list[str]


def crawl(
    page: Page, *further: tuple[str, str], visit: Callable[[str], APIResponse | Response] | None = None
) -> Iterator[CrawledPage]:
    """One page of every linked route, as the person of `page` gets it. The pages are requested, not rendered.

    `further`: pages to which a form or a tab leads, each with the page that has it. `visit`: gets a page otherwise.
    """
    visit = visit or page.request.get
    starts = (*START_PAGES, *further)
    queue, known = deque(starts), {*(route_of(path) for path, _ in starts), *FILES}
    while queue:
        path, linked_from = queue.popleft()
        response = visit(path)
        assert response.status == 200, (path, linked_from)
        html = response.text()
        addresses = _Addresses(html, response.url)
        crawled = CrawledPage(path, route_of(path) or "", linked_from, html, addresses.links, addresses.parts)
        yield crawled
        for link in crawled.links:
            route = route_of(link)
            if route and route not in known:
                known.add(route)
                queue.append((link, path))


class _Addresses(HTMLParser):
    """The links of a page, without downloads, and the addresses of the parts that it loads."""

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
    """The name of the route of a page. None if the address is not a page of the console."""
    try:
        match = resolve(urlsplit(address).path)
    except Resolver404:
        return None
    return None if match.namespaces and match.namespaces[0] in NON_PAGE_NAMESPACES else match.view_name
