"""Nodes as the controller reports them: only differences are written, and taints are shown."""

import re
from dataclasses import replace

import pytest
from django.db import connection
from django.forms import model_to_dict
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.apps.test_quotas import hold_gpus

from hekla.apps.clusters import selectors, services
from hekla.apps.clusters.models import Node, NodeFacts, NodeUsageRow
from hekla.apps.demonstrations.stages import STAGES
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import MOST_JOBS_ON_NODE, Job, Pod
from hekla.domain.errors import Refused
from hekla.domain.node_labels import MAX_SET_LABELS
from hekla.lib import clock
from hekla.scheduling import occupancy

__all__ = ["db", "people", "shared_people"]

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


def page_of(name: str) -> str:
    return reverse("clusters:node", args=[Node.objects.get(name=name).pk])


@pytest.fixture
def tainted(people: People) -> People:
    observe(people, BEFORE)
    return people


def test_unchanged_node_is_not_written(tainted: People) -> None:
    assert observe(tainted, replace(BEFORE, images={})) == (0, [])


def test_labels_that_were_set_here_stay_beside_those_of_the_cluster(tainted: People) -> None:
    label(fast="yes")
    assert observe(tainted, BEFORE) == (0, [])
    writes, (event,) = observe(tainted, replace(BEFORE, labels={"rack": "a"}))
    assert (writes, event.kind) == (1, "NodeChanged")
    assert Node.objects.get(name="n1").labels == {"rack": "a", "fast": "yes"}
    with pytest.raises(Refused):
        label(rack="b")
    with pytest.raises(Refused):
        label(**{f"n{number}": "" for number in range(MAX_SET_LABELS)})
    label(fast=None, unknown=None)
    assert Node.objects.get(name="n1").labels == {"rack": "a"}
    assert [one.payload for one in LoggedEvent.objects.filter(kind="NodeLabelled").order_by("id")] == [
        {"node": "n1", "labels": {"fast": "yes"}, "removed": []},
        {"node": "n1", "labels": {}, "removed": ["fast"]},
    ]


def label(**labels: str | None) -> None:
    services.label_node(Node.objects.get(name="n1"), labels, actor=PLATFORM, now=clock.now())


CHANGES = [{"taints": []}, {"annotations": {}}, {"labels": {"rack": "a"}}, {"is_ready": False}]


@pytest.mark.parametrize("changes", CHANGES, ids=lambda changes: next(iter(changes)))
def test_changed_node_is_an_event(tainted: People, changes: dict[str, object]) -> None:
    writes, (event,) = observe(tainted, replace(BEFORE, **changes))
    assert (writes, event.kind) == (1, "NodeChanged")
    assert event.payload.get("taints", []) == changes.get("taints", BEFORE.taints)


@pytest.mark.parametrize(
    ("labels", "models"),
    [
        ({}, {}),
        ({"nvidia.com/gpu.product": "NVIDIA-A100"}, {"nvidia.com/gpu": "NVIDIA-A100"}),
        ({"nvidia.com/gpu.product": "N" * 300}, {"nvidia.com/gpu": "N" * 253}),
    ],
)
def test_event_has_the_models_of_cards(tainted: People, labels: dict[str, str], models: dict[str, str]) -> None:
    """They are history: the row of the node has only its present labels."""
    allocatable = {**BEFORE.allocatable, "nvidia.com/gpu": "8"}
    _writes, (event,) = observe(tainted, replace(BEFORE, allocatable=allocatable, labels=labels))
    assert event.payload.get("models", {}) == models


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
    page = as_(tainted.ada).get(page_of("n1")).content.decode()
    assert "zone north-1" in page
    assert "region north" in page
    (node,) = as_(tainted.ada).get(reverse("api:v1:nodes")).json()
    assert (node["zone"], node["region"]) == ("north-1", "north")


def test_page_shows_taints(tainted: People, as_) -> None:
    page = as_(tainted.ada).get(page_of("n1")).content.decode()
    assert "<code>gpu=yes:NoSchedule</code>" in page
    assert "not ready" not in page


def names(page: str) -> list[str]:
    return re.findall(r'<tr id="node-\d+"><th scope="row"><a href="[^"]+">([^<]+)<', page)


@pytest.fixture
def fleet(people: People) -> People:
    """Four nodes: three with GPUs in two racks, one of them not ready and one cordoned."""
    racks = {"rack-a": [{"name": "rack-a", "tier": 1}], "rack-b": [{"name": "rack-b", "tier": 1}]}
    gpus, a100 = {**BEFORE.allocatable, "nvidia.com/gpu": "8"}, {"nvidia.com/gpu.product": "A100"}
    facts = [
        replace(BEFORE, name="a1", allocatable=gpus, labels=a100, hypernodes=racks["rack-a"]),
        replace(BEFORE, name="a2", allocatable=gpus, labels=a100, hypernodes=racks["rack-a"]),
        replace(BEFORE, name="b1", allocatable=gpus, hypernodes=racks["rack-b"], is_ready=False, message="<b>no"),
        replace(BEFORE, name="cpu-only"),
    ]
    Node.objects.all().delete()
    services.observe_nodes(people.cluster, facts, now=clock.now())
    Node.objects.filter(name="a2").update(is_cordoned=True)
    task = {"name": "main", "command": ["true"], "resources": {"nvidia.com/gpu": "6"}}
    hold_gpus(people.submit("holds", tasks=[task]), clock.now(), None)
    Pod.objects.update(node="a1")
    node = Node.objects.get(name="a1")
    NodeUsageRow.objects.create(node=node, at=clock.now(), cpu=37, memory=13, whole_cpu=4000, whole_memory=1, cards=[])
    occupancy.forget()
    return people


def test_table_is_searched_and_sorted(fleet: People, as_) -> None:
    client, address = as_(fleet.alice), reverse("clusters:nodes")
    page = client.get(address).content.decode()
    assert names(page) == ["a1", "a2", "b1", "cpu-only"]
    assert "6 of 8 GPU" in page
    assert "37 % CPU, 13 % memory" in page
    assert "&lt;b&gt;no" in page
    assert ">holds " in page
    assert "holds" not in as_(fleet.charlie).get(address).content.decode()
    found = {"a100": ["a1", "a2"], "rack-b": ["b1"], "cordoned": ["a2"], "not ready": ["b1"]}
    for words, expected in found.items():
        assert names(client.get(address, {"q": words}).content.decode()) == expected
    assert names(client.get(address, {"sort": "-cards", "all": "yes"}).content.decode())[-2:] == ["a1", "cpu-only"]


def test_table_lists_the_first_jobs_of_a_node(fleet: People, as_) -> None:
    template, numbers = Pod.objects.get(), range(MOST_JOBS_ON_NODE)
    for number in numbers:
        job = fleet.submit(f"more-{number}")
        Pod.objects.create(
            job=job, **{**model_to_dict(template, exclude=["id", "job"]), "slot": template.slot + number + 1}
        )
    client, address = as_(fleet.alice), reverse("clusters:nodes")
    [cell] = re.findall(
        r'<td data-label="Jobs"><span class="one-line">(.*?)</span></td>', client.get(address).content.decode()
    )
    assert re.findall(r">([a-z0-9-]+) main-0<", cell) == ["holds", *(f"more-{number}" for number in numbers[:-1])]
    assert cell.endswith(" …")
    Job.objects.filter(name="more-0").update(deleted_at=clock.now())
    assert " …" not in client.get(address).content.decode()


def test_map_draws_racks_with_allocation_and_usage(fleet: People, as_) -> None:
    page = as_(fleet.alice).get(reverse("clusters:nodes")).content.decode()
    part = page[page.index('class="heat-map"') : page.index("heat-key")]
    assert re.findall(r"<small[^>]*>([^<]+)<", part) == ["rack-a", "rack-b"]
    cells = re.findall(r'class="(heat [^"]+)"[^>]*aria-label="([^"]+)"[^>]*>(<i class="heat-\d">)?', part)
    assert cells == [
        ("heat heat-3", "a1 · Ready · 6 of 8 GPU · measured: 37 %", '<i class="heat-2">'),
        ("heat heat-0 heat-out", "a2 · Cordoned · 0 of 8 GPU", ""),
        ("heat heat-0 heat-out", "b1 · not ready · 0 of 8 GPU", ""),
        ("heat heat-0", "cpu-only · Ready · 0 of 4 CPU", ""),
    ]
    assert "6 of 24 GPU" in part


def test_page_follows_new_measurements_and_the_language(fleet: People, as_) -> None:
    client, address = as_(fleet.alice), reverse("clusters:nodes")
    assert "a1 · Ready · 6 of 8 GPU · measured: 37 %" in client.get(address).content.decode()
    NodeUsageRow.objects.update(at=clock.now(), cpu=51)
    page = client.get(address).content.decode()
    assert "a1 · Ready · 6 of 8 GPU · measured: 51 %" in page
    assert "51 % CPU" in page
    translated = client.get(address, headers={"accept-language": "zh-hans"}).content.decode()
    assert "a1 · 就绪" in translated
    NodeUsageRow.objects.all().delete()
    assert "measured: " not in client.get(address).content.decode()


def test_cards_of_many_nodes_follow_new_measurements(fleet: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "_FEW_NODES", 0)
    nodes = list(Node.objects.all())

    def cards() -> list[object]:
        return [one.cards for one in selectors.fresh_usage(nodes, now=clock.now()).values()]

    for busy in (10, 20):
        card = {"resource": "nvidia.com/gpu", "index": 0, "busy": busy, "memory": 1}
        NodeUsageRow.objects.update(at=clock.now(), cards=[card])
        assert cards() == [[card]]
    with CaptureQueriesContext(connection) as queries:
        assert cards() == [[card]]
    assert len(queries) == 1
    NodeUsageRow.objects.all().delete()
    assert cards() == []


def test_nodes_of_demonstrations_are_apart(fleet: People, as_) -> None:
    fleet.cluster.name = STAGES[0].name
    fleet.cluster.save()
    occupancy.forget()
    client, address = as_(fleet.alice), reverse("clusters:nodes")
    page = client.get(address).content.decode()
    assert names(page) == []
    assert "Show 4 simulated nodes of the demonstrations" in page
    assert len(names(client.get(address, {"demonstrations": "yes"}).content.decode())) == 4
