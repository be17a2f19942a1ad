"""Events during the rendering of a page are not lost: the page reads its event number before all else."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from tests.apps.access_world import World, make_world, respond

from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.services import PLATFORM, record, unit_of_work
from hekla.domain import events
from hekla.lib import clock
from hekla.lib.checkout import CHECKOUT

LIVE_PAGES = [
    "home", "jobs:list", "jobs:detail", "jobs:pod", "queues:list", "queues:detail", "clusters:nodes", "flows:list",
    "clusters:list", "clusters:detail", "clusters:node",
    "flows:detail", "batches:list", "batches:detail", "schedules:list", "schedules:detail", "demonstrations:detail",
    "runs:compare", "alerts:list", "alerts:detail",
]  # fmt: skip
PAGE_QUERY = re.compile(
    r'FROM "?(jobs_job|jobs_pod|queues_queue|clusters_|flows_|batches_|schedules_|demonstrations_|alerts_)'
)


@pytest.fixture
def world(db: None) -> World:
    return make_world()


class EventAfterFirstQuery:
    """Records an event right after the first query for rows that a page shows."""

    number = 0

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if not self.number and sql.startswith("SELECT") and PAGE_QUERY.search(sql):
            self.number = -1
            with unit_of_work():
                record(events.TenantCreated(name="x"), subject="job:7", actor=PLATFORM, at=clock.now())
            self.number = event_log.last_number()
        return result


@pytest.mark.parametrize("name", LIVE_PAGES)
def test_page_number_is_older_than_its_data(world: World, name: str) -> None:
    client, recorder = Client(), EventAfterFirstQuery()
    client.force_login(world.people.ada, backend="django.contrib.auth.backends.ModelBackend")
    with connection.execute_wrapper(recorder):
        answer = respond(world, name, "get", client)
    found = {int(since) for since in re.findall(r'data-live-since="(\d+)"', answer.content.decode())}
    assert len(found) == 1  # a page with a live part of its own has the number twice
    assert 0 < found.pop() < recorder.number


def test_every_live_page_is_covered() -> None:
    pages = (CHECKOUT / "templates").rglob("*.html")
    assert len([page for page in pages if "{% block live_since %}{{" in page.read_text()]) == len(LIVE_PAGES)
