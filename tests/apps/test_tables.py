"""List tables: sorting, filters and pages from the query, saved for each user; values are escaped."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.http import QueryDict
from django.template import Context
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.support.markup import tidy

from hekla.apps.accounts.models import User
from hekla.lib import clock
from hekla.pages.accounts.tables import PeopleFilter, PeopleTable
from hekla.pages.frame import tables
from hekla.pages.frame.tables import ListColumn, Listing, ListTable, TextSearch, listing_of

__all__ = ["db", "people", "shared_people"]
As = Callable[[User], Client]
NAMES = ["ada", "alice", "bob", "charlie"]
EVIL = "<script>alert(1)</script>"


class Figures(ListTable):
    """A table of rows that are not in the database."""

    label = "Figures"
    size = 2

    name = ListColumn("Name", sort="name", cell=lambda row: row["name"])
    figure = ListColumn("Figure", sort="figure", number=True)
    unsorted = ListColumn("Unsorted", cell=lambda row: "")


ROWS = [{"name": "b", "figure": 2}, {"name": "a", "figure": None}, {"name": "c", "figure": 1}]


def listing(query: str, filters: Any = None) -> Listing:
    return listing_of(QueryDict(query), Figures, ROWS, filters)


def names(page: Listing) -> str:
    return "".join(record["name"] for record in page.records)


def usernames(client: Client, **query: str) -> list[str]:
    """The usernames in the list of people."""
    page = client.get(reverse("accounts:list"), query).content.decode()
    return re.findall(r'<span class="row-note">(\w+)', page)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "ba"), ("page=2", "c"), ("sort=name", "ab"), ("sort=-name", "cb"), ("sort=figure&page=2", "b"),
        ("sort=-figure&page=2", "a"), ("sort=unsorted", "ba"), ("sort=nothing", "ba"), ("sort=--name", "ba"),
        ("sort=name,figure", "ba"), ("sort=", "ba"), ("sort=-", "ba"), ("sort=a.b", "ba"), ("page=0", "c"),
        ("page=-1", "c"), ("page=99", "c"), ("page=99999999999999999999", "c"), ("page=x", "ba"), ("page=%00", "ba"),
        ("size=999&per_page=999", "ba"), ("sort=name&sort=-name", "cb"),
    ],
)  # fmt: skip
def test_sorting_and_paging(query: str, expected: str) -> None:
    assert names(listing(query)) == expected


@pytest.mark.parametrize(
    ("query", "expected", "is_filtered"),
    [
        ("q=A", "a", True),
        ("q=x", "", True),
        ("q=", "ba", False),
        ("q=%00", "ba", False),
        (f"q={'a' * 101}", "ba", False),
    ],
)
def test_plain_rows_are_searched(query: str, expected: str, is_filtered: bool) -> None:
    page = listing(query, TextSearch(lambda row: row["name"]))
    assert (names(page), page.is_filtered) == (expected, is_filtered)


def test_heads_show_the_order_and_keep_other_parameters() -> None:
    page = listing("sort=name&page=2&tenant=lab&all=yes")
    first, second, third = page.heads
    assert first == (
        '<th scope="col" aria-sort="ascending">'
        f'<a href="?tenant=lab&amp;sort=-name">Name{tables.html.icon("up")}</a></th>'
    )
    assert second == '<th scope="col" class="number"><a href="?tenant=lab&amp;sort=figure">Figure</a></th>'
    assert third == '<th scope="col">Unsorted</th>'


def test_page_links_keep_the_query() -> None:
    assert listing("tenant=lab").next == "?tenant=lab&all=yes&page=2"
    assert listing("sort=name&page=2").previous == "?sort=name&page=1"
    assert listing("sort=name&tenant=lab").cleared == "?tenant=lab&all=yes"
    assert listing("sort=name&page=9").live_query == "sort=name&page=2"
    assert names(listing_of(QueryDict(listing("sort=-name&page=2").live_query), Figures, ROWS)) == "a"


def test_cells_are_escaped_and_labelled() -> None:
    page = listing_of(QueryDict(), Figures, [{"name": EVIL, "figure": EVIL}])
    row = page.table.body(page.records[:1], Context())
    assert EVIL not in row
    assert row.startswith('<tr><th scope="row">&lt;script&gt;')
    assert '<td class="number" data-label="Figure">&lt;script&gt;' in row


def test_empty_cell_shows_a_dash() -> None:
    page = listing("")
    assert f'data-label="Figure">{tables.html.NOTHING}</td>' in page.table.body(page.records[1:2], Context())


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, NAMES), ({"sort": "name"}, NAMES), ({"sort": "-name"}, NAMES[::-1]), ({"q": "LI"}, ["alice", "charlie"]),
        ({"q": "li", "sort": "-name"}, ["charlie", "alice"]), ({"role": "admin"}, ["ada"]), ({"role": "none"}, NAMES),
        ({"q": "\0"}, NAMES), ({"q": "x" * 101}, NAMES), ({"sort": "password"}, NAMES), ({"page": "7"}, NAMES),
        ({"q": "nobody"}, []), ({"unknown": "word"}, NAMES),
    ],
)  # fmt: skip
def test_list_of_people_follows_the_query(people: People, as_: As, query: dict[str, str], expected: list[str]) -> None:
    assert usernames(as_(people.ada), **query) == expected


def test_list_state_is_restored_until_cleared(people: People, as_: As) -> None:
    ada = as_(people.ada)
    assert usernames(ada, sort="-name", q="li") == ["charlie", "alice"]
    assert usernames(ada) == ["charlie", "alice"]
    assert usernames(ada, page="1") == ["charlie", "alice"]
    page = ada.get(reverse("accounts:list")).content.decode()
    assert 'href="?all=yes">Clear</a>' in page
    assert usernames(ada, all="yes") == NAMES
    assert usernames(ada) == NAMES


def test_empty_search_clears_the_saved_state(people: People, as_: As) -> None:
    ada = as_(people.ada)
    usernames(ada, q="li")
    assert '<input type="hidden" name="all" value="yes">' in tidy(ada.get(reverse("accounts:list")).content.decode())
    usernames(ada, all="yes", q="")
    assert usernames(ada) == NAMES


def test_state_is_saved_for_each_list_and_user(people: People, as_: As) -> None:
    ada, other = as_(people.ada), as_(people.ada)
    usernames(ada, sort="-name")
    assert usernames(other) == NAMES
    assert "aria-sort" not in ada.get(reverse("tenancy:list")).content.decode().replace('aria-sort="ascending"', "", 1)
    assert set(ada.session["lists"]) == {f"{people.ada.pk}:PeopleTable"}


def test_invalid_parameters_are_not_saved(people: People, as_: As) -> None:
    ada = as_(people.ada)
    usernames(ada, sort="password", role="none", q="\0")
    assert "lists" not in ada.session or ada.session["lists"] == {}


def test_search_form_is_shown_for_long_or_filtered_lists(people: People, as_: As, monkeypatch: Any) -> None:
    ada, address = as_(people.ada), reverse("accounts:list")
    assert 'role="search"' in ada.get(address).content.decode()
    monkeypatch.setattr(PeopleTable, "is_always_searchable", False)
    assert 'role="search"' not in ada.get(address).content.decode()
    assert 'role="search"' in ada.get(f"{address}?q=li").content.decode()
    monkeypatch.setattr(PeopleTable, "size", 2)
    page = ada.get(f"{address}?all=yes").content.decode()
    assert '<select name="role" aria-label="Platform role">' in page
    assert "1–2 of 4" in page
    assert 'href="?all=yes&amp;page=2"' in page


def test_empty_result_offers_to_clear_the_filters(people: People, as_: As) -> None:
    page = as_(people.ada).get(reverse("accounts:list"), {"q": "nobody"}).content.decode()
    assert "No matches" in page
    assert 'href="?all=yes"><span>Clear filters</span>' in tidy(page)


def test_names_are_escaped(people: People, as_: As) -> None:
    User.objects.filter(pk=people.bob.pk).update(display_name=EVIL)
    page = as_(people.ada).get(reverse("accounts:list"), {"q": EVIL[:8]}).content.decode()
    assert EVIL not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 2


def test_query_count_is_constant(people: People, as_: As) -> None:
    ada, address = as_(people.ada), reverse("accounts:list")
    ada.get(address)
    with CaptureQueriesContext(connection) as few:
        ada.get(address)
    now = clock.now()
    User.objects.bulk_create(User(username=f"person-{number:03}", date_joined=now) for number in range(100))
    with CaptureQueriesContext(connection) as many:
        ada.get(address)
    assert len(many) == len(few) + 1  # one more query, which counts them


def test_paging_is_stable_for_equal_rows(people: People) -> None:
    User.objects.bulk_create(User(username=f"person-{number:03}") for number in range(120))
    found = [
        record.pk
        for page in (1, 2, 3)
        for record in listing_of(
            QueryDict(urlencode({"sort": "role", "page": page})), PeopleTable, User.objects.all(), PeopleFilter
        ).records
    ]
    assert len(found) == len(set(found)) == User.objects.count()
