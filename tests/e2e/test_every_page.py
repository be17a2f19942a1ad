"""Every linked page is accessible and fits a phone.

A crawl from the home page finds the pages, one of each route. So it covers new pages, and shows pages without a link.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import APIResponse, Browser, Page, Response, ViewportSize, expect
from tests.e2e.conftest import HeklaServer, clean
from tests.e2e.crawler import FILES, NON_PAGE_NAMESPACES, CrawledPage, crawl
from tests.e2e.people import send
from tests.support.browser import SIZE
from tests.support.examples import EVERY

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NARROWEST: ViewportSize = {"width": 320, "height": 800}
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
LOOKS: list[dict[str, Any]] = [
    {"size": {"width": 1440, "height": 900}, "scheme": "light", "language": "en", "rules": LEVELS},
    {
        "size": {"width": 360, "height": 780}, "scheme": "dark", "language": "zh-hans",
        "rules": ["color-contrast", "target-size", "html-has-lang", "html-lang-valid", "scrollable-region-focusable"],
    },
]  # fmt: skip
"""The second look has only the rules that depend on size, colours and language."""
MAIN = {"command": ["echo", "{{ n }}"], "name": "main", "resources": {"cpu": "10m"}}
JOB = {"name": "kept", "tasks": [MAIN | {"command": ["echo", "here"]}]}
WRITE = MAIN | {"command": ["sh", "-c", "echo here > out.txt; echo ::metric step=1 loss=2"]}
NODES = {"nodes": [{"name": "gpu", "count": 4, "allocatable": {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8"}}]}
TRACE = "JobID|Submit|Start|End|State\n1|2026-01-01T00:00:00|2026-01-01T01:00:00|2026-01-01T02:00:00|COMPLETED\nx|y\n"
OBJECTS: list[tuple[str, dict[str, Any]]] = [
    ("templates", JOB),
    ("flows", {"name": "chain", "steps": [{"name": "first", "job": JOB}]}),
    ("batches", {"name": "swept", "parameters": {"n": ["1", "2"]}, "job": {"tasks": [MAIN]}}),
    ("schedules", {"name": "nightly", "cron": "@daily", "job": JOB}),
    ("saved_templates", {"name": "usual", "spec": JOB}),
    ("gallery", {"title": "Usual", "spec": JOB}),
    ("priority-classes", {"name": "kept-back", "value": 10, "is_offered": False}),
    ("departments", {"slug": "science", "name": "Science"}),
    ("clusters", {"name": "beyond", "kind": "simulated", "config": {"nodes": []}}),
    ("queues", {"name": "beyond", "cluster": "beyond"}),
    ("clusters", {"name": "nearer", "kind": "simulated", "config": NODES}),
    ("queues", {"name": "nearer", "cluster": "nearer"}),
    ("policy-lab", {"cluster": "nearer", "starts_at": "2026-01-01T00:00:00Z", "ends_at": "2026-01-02T00:00:00Z"}),
    ("policy-lab/traces", {"name": "jobs.txt", "format": "sacct", "content": TRACE}),
    ("alert-rules", {"name": "node down", "measure": "node_not_ready", "threshold": 0}),
    ("reports", {"name": "use", "sections": ["classes", "tenants", "waste"], "every": "week"}),
    ("price-lists", {"begin_at": "2100-01-01T00:00:00Z", "spec": {"name": "prices", "currency": "EUR", "cpu": "0.03"}}),
    ("federated-queues", {"name": "over", "members": ["beyond", "nearer"]}),
]
"""Objects of each kind that has a page. They are created through REST."""


@dataclass
class Crawl:
    """One page of every linked route, and what is wrong with those that were also opened, by then, in the first look.

    The server renders a page once for both.
    """

    page: Page
    found: list[CrawledPage] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    _visited: int = 0

    def visit(self, path: str) -> APIResponse | Response:
        """Open the page, or request it if its turn is another look."""
        at, self._visited = self._visited, self._visited + 1
        if not _is_in_turn(at, LOOKS[0]):
            return self.page.request.get(path)
        response, problems = _look(self.page, path, LOOKS[0], at)
        self.problems += problems
        return response


@pytest.fixture(scope="module")
def crawled(hekla: HeklaServer, admin_page: Page) -> Crawl:
    clean(hekla, admin_page)
    admin_page.goto("/")
    for kind, document in OBJECTS:
        send(admin_page, "POST", f"/api/v1/{kind}", document)
    admin_page.goto("/accounts/new/")
    admin_page.locator("#id_username").fill("vera")
    with admin_page.expect_navigation():
        admin_page.get_by_role("button", name="Add").click()
    files, preview, others = _written(admin_page)
    further = ((preview, files), (f"/compare/?job={others[0]}&job={others[1]}", "/jobs/"))
    made = Crawl(admin_page)
    with _noting_policies(admin_page, made.problems):
        made.found.extend(crawl(admin_page, *further, visit=made.visit))
    return made


@pytest.fixture
def pages(crawled: Crawl) -> list[CrawledPage]:
    return crawled.found


def _written(page: Page) -> tuple[str, str, list[str]]:
    """The files of a job that wrote one, the preview of its file, and two jobs to compare."""
    response: Any = send(page, "POST", "/api/v1/jobs", {"name": "writes", "tasks": [WRITE]})
    uid = response["job"]["uid"]
    page.goto(f"/jobs/{uid}/?tab=files")
    link = page.get_by_role("link", name="out.txt", exact=True)
    expect(page.locator("#job-head")).to_contain_text("Completed", timeout=60_000)
    page.reload()
    listed = page.request.get("/api/v1/jobs?limit=2").json()["results"]
    return f"/jobs/{uid}/?tab=files", str(link.get_attribute("href")), [one["uid"] for one in listed]


def _show(page: Page, path: str, look: dict[str, Any], size: ViewportSize) -> Response:
    page.set_viewport_size(size)
    page.emulate_media(color_scheme=look["scheme"], reduced_motion="reduce")
    origin = re.match(r"https?://[^/]+", page.url)
    assert origin
    page.context.add_cookies([{"name": "django_language", "value": look["language"], "url": origin[0]}])
    response = page.goto(path)
    assert response
    return response


@contextmanager
def _noting_policies(page: Page, problems: list[str]) -> Iterator[None]:
    """Adds what the browser reports meanwhile about the policies of content security and of permissions."""
    console: list[str] = []
    page.on("console", note := lambda message: console.append(f"{message.location['url']}: {message.text}"))
    yield
    page.remove_listener("console", note)
    problems += [line for line in console if "Policy" in line]


def _is_in_turn(at: int, look: dict[str, Any]) -> bool:
    """Whether the page with this number has this look. By default, a third has the second one, the others the first."""
    return EVERY == 1 or (at % EVERY == 1) == (look is LOOKS[1])


def _look(page: Page, path: str, look: dict[str, Any], at: int) -> tuple[Response, list[str]]:
    """Open a page, and what is wrong with it. By default, axe reads a sixth of all pages in each look."""
    is_read = at % (EVERY if EVERY == 1 else 2 * EVERY) == LOOKS.index(look) % EVERY
    response, problems = _show(page, path, look, look["size"] if is_read else NARROWEST), []
    if is_read:
        problems += [f"{path}: {problem}" for problem in _violations(page, look["rules"])]
        page.set_viewport_size(NARROWEST)
    if (width := page.evaluate("document.documentElement.scrollWidth")) > NARROWEST["width"]:
        problems.append(f"{path}: {width} px wide")
    return response, problems


def _violations(page: Page, rules: list[str]) -> list[str]:
    """The violations that axe reports, without the small squares of a gang: the list of pods has the same links."""
    options = {"runOnly": rules, "resultTypes": ["violations"], "preload": False}  # no rule reads the style sheets
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found = page.evaluate("options => axe.run(options).then(result => result.violations)", options)
    problems = [f"{one['id']}: {node['target']} {node['html'][:120]}" for one in found for node in one["nodes"][:3]]
    return [problem for problem in problems if not (problem.startswith("target-size") and ".gang-pods" in problem)]


def test_pages_are_accessible_and_fit_a_phone(crawled: Crawl) -> None:
    """In the first look; the pages were opened when they were found."""
    assert not crawled.problems, "\n".join(crawled.problems)


def test_pages_are_accessible_and_fit_a_phone_in_the_dark_and_in_chinese(crawled: Crawl) -> None:
    problems: list[str] = []
    with _noting_policies(crawled.page, problems):
        for at, found in enumerate(crawled.found):
            if _is_in_turn(at, LOOKS[1]):
                problems += _look(crawled.page, found.path, LOOKS[1], at)[1]
    assert not problems, "\n".join(problems)


MAX_REQUESTS, MAX_KIB, MAX_KIB_WITH_PLOTS = 25, 120, 500


def test_first_visit_of_a_page_takes_few_requests_and_bytes(
    hekla: HeklaServer, browser: Browser, admin_page: Page, pages: list[CrawledPage]
) -> None:
    """Counted in the browser, as compressed, with an empty cache for each page."""
    signed_in: Any = admin_page.context.storage_state()
    paths = {page.route: page.path for page in pages}
    visits = [(None, "/accounts/sign-in/", MAX_KIB)]
    visits += [(signed_in, paths[route], MAX_KIB) for route in ("home", "jobs:list", "jobs:detail", "queues:detail")]
    visits += [(signed_in, "/design/", MAX_KIB_WITH_PLOTS)]
    for state, path, most in visits:
        context = browser.new_context(base_url=hekla.url, viewport=SIZE, storage_state=state)
        page, sizes = context.new_page(), []
        network = context.new_cdp_session(page)
        network.send("Network.enable")
        network.on("Network.loadingFinished", lambda event, sizes=sizes: sizes.append(event["encodedDataLength"]))
        page.goto(path, wait_until="networkidle")
        context.close()
        assert 4 <= len(sizes) <= MAX_REQUESTS, path
        assert sum(sizes) / 1024 <= most, path


def test_every_page_is_linked(pages: list[CrawledPage]) -> None:
    from hekla.pages.access_matrix import declared

    exempt = {
        "health", "live", "ready",  # for programs
        "favicon", "set_language", "accounts:sign_in", "accounts:use_link",  # before signing in
        "home_needs", "home_day", "jobs:timeline", "job_unblock", "reclaim_risk", "job_cost",  # parts of pages
        "usage:job", "usage:pod", "notifications:bell",
        "invitations:sign_up", "accounts:second_step", "accounts:prove",  # while signing in
        "accounts:identities",  # only with an identity provider
        "jobs:former_presets",  # a former address
        "notifications:job",  # a form within the page of a job
        "demonstrations:detail",  # only after it ran
        "jobs:terminal", "workbench:tools", "workbench:session", "workbench:activity",  # only while a pod runs
        "workbench:people",  # a part of a page
        "sharing:fork", "sharing:session", "sharing:terminal", "sharing:of_job", "sharing:recording",  # as well
        "idleness:job",  # only of jobs with GPUs
        "operations:cost_pods",  # only where something cost something
        "operations:holdings",  # only where pods have held GPUs
        "policy_lab:state", "operations:wall_state", "operations:stalled_of",  # parts of pages
        "operations:counted", "operations:waiting_now",  # only where jobs of real clusters are counted
        "clusters:metrics_token",  # only of clusters with Prometheus
        "reports:run", "reports:leave",  # only after a report was sent
    }  # fmt: skip
    admin_routes = {
        name
        for name, route in declared().items()
        if route.get
        and route.get["platform_admin"] == "ok"
        and not name.startswith(tuple(f"{ns}:" for ns in NON_PAGE_NAMESPACES))
    }
    missing = sorted(admin_routes - exempt - FILES - {found.route for found in pages})
    assert not missing, ", ".join(missing)
