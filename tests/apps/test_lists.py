"""Every list page uses a table of `pages/frame/tables.py`. Each linked head sorts it both ways."""

import re
from collections.abc import Iterator
from html import unescape

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoDbBlocker
from tests.apps.access_world import World, make_world
from tests.apps.shared_world import db

from hekla.apps.schedules.models import Schedule, ScheduleRun
from hekla.lib import clock
from hekla.pages import registry
from hekla.pages.frame import tables
from hekla.pages.frame.tables import ListTable

__all__ = ["db"]

LISTS = {
    "accounts:list": 4, "tenancy:list": 4, "tenancy:detail": 4, "departments:list": 3, "accounts:login_sessions": 0,
    "invitations:list": 4, "priorities:list": 4, "clusters:environments": 3,
    "federated_queues:list": 2, "federated_queues:detail": 3,
    "schedules:list": 2, "flows:list": 3, "flows:templates": 3, "batches:list": 2, "clusters:list": 7,
    "queues:list": 8, "clusters:nodes": 5, "jobs:presets": 3, "departments:detail": 4, "schedules:detail": 3,
    "tenancy:quotas": 4,
}  # fmt: skip
"""The number of sortable columns of each page. The list of login sessions is empty: a test sign-in records none."""


@pytest.fixture(scope="module")
def shared_world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """One world for all lists."""
    with django_db_blocker.unblock(), transaction.atomic():
        world = make_world()
        ScheduleRun.objects.create(schedule=Schedule.objects.get(), due_at=clock.now(), outcome="missed")
        yield world
        transaction.set_rollback(True)


@pytest.fixture
def world(db: None, shared_world: World) -> World:
    return shared_world


def open_list(world: World, name: str, query: str = "") -> str:
    client: Client = world.browser(world.signed_in["platform_admin"])
    answer = client.get(reverse(name, args=world.arguments.get(name, [])) + query)
    assert answer.status_code == 200, f"{name}{query}"
    return answer.content.decode()


def sort_links(page: str) -> list[str]:
    return [unescape(link) for link in re.findall(r'<th scope="col"[^>]*><a href="[^"]*(\?[^"]*sort=[^"]*)"', page)]


@pytest.mark.parametrize("name", LISTS)
def test_each_head_sorts_both_ways(world: World, name: str) -> None:
    links = sort_links(open_list(world, name, "?all=yes"))
    assert len(links) == LISTS[name]
    for link in links:
        page = open_list(world, name, link)
        assert len(re.findall(r'aria-sort="\w+"', page)) == 1
        sign, column = re.search(r"sort=(-?)(\w+)", link).groups()
        assert 'aria-sort="' in open_list(world, name, f"?sort={'' if sign else '-'}{column}")
    if links:
        assert "Clear" in open_list(world, name, links[0])


def test_forms_in_cells_have_a_csrf_token(world: World) -> None:
    for name in ("jobs:presets", "tenancy:detail", "invitations:list"):
        page = open_list(world, name)
        rows = page[page.index("<tbody>") : page.index("</tbody>")]
        assert 0 < rows.count('method="post"') == rows.count('name="csrfmiddlewaretoken"'), name


@pytest.mark.parametrize("name", LISTS)
def test_unknown_query_values_are_ignored(world: World, name: str) -> None:
    for query in ("?sort=nothing", "?page=nothing", "?page=-4&sort=--name", "?q=%00", "?role=none&phase=none&q=nobody"):
        open_list(world, name, query)


def every_table() -> list[type[ListTable]]:
    for _page in registry.load_all():
        pass  # a table is known once its module is imported
    return sorted(_tables(ListTable), key=lambda table: (table.__name__, table.__module__))


def _tables(kind: type[ListTable]) -> Iterator[type[ListTable]]:
    for table in kind.__subclasses__():
        if table.__module__.startswith("hekla."):
            yield table
        yield from _tables(table)


@pytest.mark.parametrize("table", every_table(), ids=lambda table: table.__name__)
def test_tables_and_columns_have_labels(table: type[ListTable]) -> None:
    assert str(table.label)
    assert all(str(column.label) for column in table.base_columns.values())
    assert table.base_columns[table.heading or next(iter(table.base_columns))].is_hidden is False
    assert len({other.__name__ for other in every_table()}) == len(list(every_table()))
    assert 0 < table.size <= 100
    assert tables.MOST_IN_ADDRESS <= 1000
