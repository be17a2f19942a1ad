"""Nodes as the controller reports them: only differences are written, and taints are shown."""

from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from tests.apps.conftest import People

from hekla.apps.clusters import selectors, services
from hekla.apps.clusters.models import Node, NodeFacts
from hekla.apps.event_log.models import LoggedEvent
from hekla.lib import clock

BEFORE = NodeFacts(
    "n1",
    {"cpu": "4", "memory": "8Gi", "pods": "10"},
    {},
    taints=["gpu=yes:NoSchedule"],
    annotations={"hekla.io/cached-datasets": "imagenet"},
    images_digest="1",
    images={"tool:1": 5 * 2**30},
)


def observe(people: People, facts: NodeFacts) -> tuple[int, list[LoggedEvent]]:
    """Report the node; the number of rows that were written, and the new events."""
    last = LoggedEvent.objects.order_by("id").last()
    with CaptureQueriesContext(connection) as queries:
        services.observe_nodes(people.cluster, [facts], now=clock.now())
    writes = sum(query["sql"].startswith('INSERT INTO "clusters_node"') for query in queries)
    return writes, list(LoggedEvent.objects.filter(id__gt=last.id if last else 0))


@pytest.fixture
def tainted(people: People) -> People:
    observe(people, BEFORE)
    return people


def test_unchanged_node_is_not_written(tainted: People) -> None:
    assert observe(tainted, replace(BEFORE, images={})) == (0, [])


CHANGES = [{"taints": []}, {"annotations": {}}, {"labels": {"rack": "a"}}, {"is_ready": False}]


@pytest.mark.parametrize("changes", CHANGES, ids=lambda changes: next(iter(changes)))
def test_changed_node_is_an_event(tainted: People, changes: dict[str, object]) -> None:
    writes, (event,) = observe(tainted, replace(BEFORE, **changes))
    assert (writes, event.kind) == (1, "NodeChanged")
    assert event.payload.get("taints", []) == changes.get("taints", BEFORE.taints)


def test_other_images_are_written_without_an_event(tainted: People) -> None:
    writes, found = observe(tainted, replace(BEFORE, images_digest="2", images={"tool:2": 7}))
    assert (writes, found) == (1, [])
    assert selectors.node_images(tainted.cluster, ["1", "2"]) == {"2": {"tool:2": 7}}


def test_row_of_an_earlier_version_has_no_taints(people: People) -> None:
    """It inserts without the new columns."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO clusters_node (cluster_id, name, allocatable, labels, is_ready, is_cordoned, message) "
            "VALUES (%s, 'old', '{}', '{}', true, false, '')",
            [people.cluster.pk],
        )
    assert Node.objects.get(name="old").facts == NodeFacts("old", {}, {})


@pytest.mark.parametrize("prefix", ["topology", "failure-domain.beta"])
def test_page_and_rest_show_zone_and_region(tainted: People, as_, prefix: str) -> None:
    found = {f"{prefix}.kubernetes.io/zone": "north-1", f"{prefix}.kubernetes.io/region": "north"}
    observe(tainted, replace(BEFORE, labels=found))
    page = as_(tainted.ada).get(reverse("clusters:nodes")).content.decode()
    assert "zone north-1" in page
    assert "region north" in page
    (node,) = as_(tainted.ada).get(reverse("api:v1:nodes")).json()
    assert (node["zone"], node["region"]) == ("north-1", "north")


def test_page_shows_taints(tainted: People, as_) -> None:
    page = as_(tainted.ada).get(reverse("clusters:nodes")).content.decode()
    assert "<code>gpu=yes:NoSchedule</code>" in page
    assert "not ready" not in page
