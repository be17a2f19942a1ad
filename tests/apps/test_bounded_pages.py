"""Pages with many rows of each kind: as many queries as with few rows, and lists of a limited length."""

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from tests.apps.access_world import World, respond
from tests.apps.crowded_world import CrowdedWorld
from tests.apps.shared_world import db, shared_world

from hekla.pages import registry
from hekla.pages.login_sessions import middleware as login_session_middleware

__all__ = ["db", "shared_world"]
pytestmark = pytest.mark.usefixtures("db")

FEW, MANY = range(3), range(3, 223)
MOST_BYTES = 1_000_000
MOST_ROWS = 200
"""The longest list is a job's history."""
MORE_QUERIES = 2
"""A list of several pages is counted."""
NO_PAGES = {"metrics", "accounts:start_oidc", "accounts:oidc_back"}
"""These do not exist in the tests."""
CHOICE = re.compile(r".* > (option|input|label)|div id_\w+ > div")
"""A choice of a form needs all its values: only the bytes of the page limit them."""
MENU = {"form menu-list > button"}
"""The menu of tenants, which ends with a link to all."""
CUT = {
    "alerts:list": r"Choose another tenant",
    "clusters:policy": r"All clusters",
    "decisions:list": r"All clusters",
    "departments:detail": r"and \d{3} more",
    "home": r"\d{3} more clusters have such a problem",
    "system:show": r"and \d{3} more",
    "jobs:pod": r"50 of \d{3} attempts",
    "policy_lab:create": r"40 queues",
    "prices:create": r"\d{2,3} more queues",
    "queues:detail": r"and \d{3} more",
}
"""Lists without pages of their own, and what stands where they are cut."""


@dataclass
class _Element:
    tag: str
    name: str
    children: Counter[str] = field(default_factory=Counter)


class _Lists(HTMLParser):
    """The longest run of children of one kind in each kind of element."""

    VOID = frozenset(
        ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"]
    )

    def __init__(self, page: str) -> None:
        super().__init__()
        self.longest: Counter[str] = Counter()
        self._open: list[_Element] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._open:
            self._open[-1].children[tag] += 1
        if tag not in self.VOID:
            values = dict(attrs)
            self._open.append(_Element(tag, values.get("id") or values.get("class") or values.get("name") or ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._open:
            self._open[-1].children[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        while self._open:
            ended = self._open.pop()
            for child, count in ended.children.items():
                where = f"{ended.tag} {ended.name} > {child}"
                self.longest[where] = max(self.longest[where], count)
            if ended.tag == tag:
                return


@dataclass
class Page:
    """What a route answers, and how many queries it made."""

    status: int
    queries: int
    text: str

    @cached_property
    def lists(self) -> Counter[str]:
        """The longest run of children in each kind of element. Found on demand: parsing takes longer than answering."""
        return _Lists(self.text).longest

    @property
    def long(self) -> dict[str, int]:
        """The lists that are longer than they may be, without the choices of forms."""
        return {where: n for where, n in self.lists.items() if n > MOST_ROWS and not CHOICE.fullmatch(where)}


@dataclass
class Compared:
    """The pages by the names of their routes."""

    few: dict[str, Page]
    many: dict[str, Page]


def routes() -> list[str]:
    """All pages that can be opened."""
    return [name for name, access in registry.routes().items() if access.get and name not in NO_PAGES]


def opened(world: World, name: str) -> Page:
    client = world.browser(world.signed_in["platform_admin"])
    with CaptureQueriesContext(connection) as queries, transaction.atomic():
        answer = respond(world, name, "get", client)
        transaction.set_rollback(True)
    is_page = answer.status_code == 200 and answer.headers["Content-Type"].startswith("text/html")
    text = answer.content.decode() if is_page else ""
    return Page(answer.status_code, len(queries), text)


@pytest.fixture(scope="module")
def compared(shared_world: World) -> Compared:
    """Every page with few rows, and with many.

    No request records the browser again, as one does each minute: on a busy machine, those with many rows would.
    """
    crowd = CrowdedWorld(shared_world)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(login_session_middleware, "_EVERY_SECONDS", 86_400)
        crowd.add(FEW)
        few = {name: opened(shared_world, name) for name in routes()}
        crowd.add(MANY)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")  # PostgreSQL would plan for few rows, and some pages take seconds
        return Compared(few, {name: opened(shared_world, name) for name in routes()})


@pytest.mark.parametrize("name", routes())
def test_page_is_bounded(compared: Compared, name: str) -> None:
    few, many = compared.few[name], compared.many[name]
    assert (few.status, many.status < 400) == (many.status, True)
    assert many.queries <= few.queries + MORE_QUERIES
    assert len(many.text) <= MOST_BYTES
    assert {where: n for where, n in many.long.items() if n > few.lists[where]} == {}


@pytest.mark.parametrize("name", routes())
def test_page_says_where_the_rest_is(compared: Compared, name: str) -> None:
    few, many = compared.few[name], compared.many[name]
    cut = {
        where
        for where, n in many.lists.items()
        if 20 <= n < len(MANY)
        and where not in MENU
        and n > few.lists[where]
        and not where.startswith("datalist ")  # suggestions; other names can be typed
    }
    assert not cut or 'rel="next"' in many.text or name in CUT, cut


@pytest.mark.parametrize("name", CUT)
def test_list_without_pages_says_that_it_is_cut(compared: Compared, name: str) -> None:
    assert re.search(CUT[name], compared.many[name].text)
    assert not re.search(CUT[name], compared.few[name].text)


def test_tenant_outside_the_short_menu_is_chosen_on_its_page(compared: Compared, shared_world: World) -> None:
    client = shared_world.browser(shared_world.signed_in["platform_admin"])
    page = client.get(reverse("tenancy:detail", args=["lab-200"])).text
    assert 'value="lab-200"' not in page.partition("tenant-switch")[2].partition("</details>")[0]
    assert "Switch to this tenant" in page
    client.post(reverse("tenancy:switch"), {"tenant": "lab-200"})
    assert "Switch to this tenant" not in client.get(reverse("tenancy:detail", args=["lab-200"])).text


def test_many_rows_are_on_the_pages(compared: Compared) -> None:
    """The rows of the crowded world do appear: pages of lists are full."""
    for name in ("jobs:list", "accounts:list", "queues:list", "tenancy:list", "flows:list", "gallery:list"):
        assert 'rel="next"' in compared.many[name].text, name
        if name != "gallery:list":  # it has the templates that come with Hekla too
            assert 'rel="next"' not in compared.few[name].text, name
