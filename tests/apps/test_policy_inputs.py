"""Policies whose plugins lack inputs: refused or shown, on the page and over REST."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.apps.test_policy_page import ada

from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster, ClusterObject, Lease, Node, NodeFacts, NodeUsageRow, PolicyVersion
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Pod
from hekla.apps.priorities import services as priorities
from hekla.apps.queues.models import Queue
from hekla.backends.registry import kinds
from hekla.domain.errors import Invalid
from hekla.domain.numa import NumaTopology
from hekla.domain.resources import Resources
from hekla.domain.scheduling_inputs import Input
from hekla.engine.model import HyperNode, NetworkTopology, NodeGroupAffinity, NodeUsage, Numa, NumaCell
from hekla.engine.policy import DEFAULT_POLICY_TEXT, parse
from hekla.lib import clock
from hekla.scheduling import extenders, policy_check, supplies
from hekla.scheduling.cache import read_snapshot

__all__ = ["ada", "db", "people", "shared_people"]

POLICY = "actions: allocate, shuffle\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n- plugins: [%s]\n"
EXTENDER = "{name: extender, arguments: {extender.urlPrefix: 'http://x', extender.predicateVerb: filter}}"
REFUSED = {"nodegroup": "{name: nodegroup}", "extender": EXTENDER}
WARNED = ("usage", "network-topology-aware", "rescheduling", "resourcequota")
MOST_QUERIES = 10
FOUR_CPUS, NO_CPU = Resources.parse({"cpu": 4}), Resources.parse({"cpu": 0})
VOLUME_CLAIM = {"metadata": {"namespace": "", "name": "data"}, "spec": {"storageClassName": "local"}}
TEMPLATE = {"metadata": {"namespace": "", "name": "one/"}, "spec": {"devices": {"requests": [{"name": "card"}]}}}
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def page_of(client: Client, **fields: str) -> str:
    address = reverse("clusters:policy")
    answer = client.post(address, fields, follow=True) if fields else client.get(address)
    return answer.content.decode()


def activate(people: People, text: str) -> None:
    """Activate a policy as earlier versions of Hekla did, without a check of its inputs."""
    clusters.set_policy(people.cluster, text, note="", by=None, actor=PLATFORM, now=clock.now())


@pytest.mark.parametrize("name", REFUSED)
def test_policy_that_cannot_work_is_refused_and_kept_in_the_form(people: People, ada: Client, name: str) -> None:
    text = POLICY % REFUSED[name]
    page = page_of(ada, text=text, note="for the deadline")
    assert f"tiers[1].plugins[0].name: “{name}” needs an input" in page
    assert "no job starts" in page
    assert "for the deadline" in page
    assert f"{{name: {name}" in page
    assert not PolicyVersion.objects.exists()


def test_policy_with_node_groups_needs_a_queue_that_has_some(people: People, ada: Client) -> None:
    Queue.objects.update(avoided_node_groups=["old"])
    page = page_of(ada, text=POLICY % "{name: nodegroup}")
    assert PolicyVersion.objects.count() == 1
    assert "From: settings of the queue" in page


@pytest.mark.parametrize(
    ("allowed", "is_accepted"),
    [
        ("http://x", True),
        ("http://x/", True),
        ("http://x/v1", False),
        ("http://x:81", False),
        ("https://x", False),
        ("http://xx", False),
    ],
)
def test_extender_needs_an_allowed_address(
    people: People, ada: Client, settings: Any, allowed: str, is_accepted: bool
) -> None:
    settings.EXTENDERS = ["http://elsewhere", allowed]
    page = page_of(ada, text=POLICY % EXTENDER)
    assert PolicyVersion.objects.exists() == is_accepted
    assert ("HEKLA_EXTENDERS does not allow this address" in page) != is_accepted
    assert ("HEKLA_EXTENDERS; predictions assume that it agrees" in page) == is_accepted


@pytest.mark.parametrize(
    ("address", "is_allowed"),
    [
        ("http://x/v1/filter", True),
        ("http://x/v1", True),
        ("http://x/v10/filter", False),
        ("http://x/v1/../filter", False),
        ("http://x/v1/%2E%2E/filter", False),
        ("http://user@x/v1/filter", False),
        ("http://x:99999/v1", False),
        ("file:///v1", False),
        ("", False),
    ],
)
def test_only_addresses_below_an_allowed_one_are_called(settings: Any, address: str, is_allowed: bool) -> None:
    settings.EXTENDERS = ["http://x/v1/"]
    assert extenders.is_allowed(address) == is_allowed


def test_preview_shows_the_inputs_of_the_new_policy(people: People, ada: Client) -> None:
    page = page_of(ada, text=POLICY % "{name: nodegroup}", **{"try": "yes"})
    assert "Plugins of this policy cannot work in this cluster." in page
    assert ">Preview<" in page
    assert "node groups of queues" in page
    assert not PolicyVersion.objects.exists()


@pytest.mark.parametrize("name", WARNED)
def test_plugin_without_effect_is_activated_with_a_warning(people: People, ada: Client, name: str) -> None:
    page = page_of(ada, text=POLICY % f"{{name: {name}}}")
    assert PolicyVersion.objects.count() == 1
    assert "Some plugins of this policy lack an input." in page
    assert f"<code>tiers[1].plugins[0].name</code> “{name}” needs an input" in page


def test_active_policy_that_could_not_be_activated_now_is_marked(people: People, ada: Client) -> None:
    activate(people, POLICY % "{name: nodegroup}")
    page = page_of(ada)
    assert "Plugins of this policy cannot work in this cluster." in page
    assert "No job starts" in page


def test_table_says_what_each_plugin_needs_and_gets(people: People, ada: Client) -> None:
    activate(people, POLICY % "{name: rescheduling}, {name: usage}")
    table = page_of(ada).partition('id="inputs"')[2]
    rows = {row.partition("</th>")[0].rpartition(">")[2]: row for row in table.split("<tr>")[2:]}
    assert list(rows) == ["allocate", "gang", "predicates", "rescheduling", "usage"]
    assert "Works in part" in rows["predicates"]
    assert "From: labels in the cluster&#x27;s configuration" in rows["predicates"]
    assert "Uses a fallback" in rows["rescheduling"]
    assert "time of the last shuffle" in rows["rescheduling"]
    assert "From: Hekla&#x27;s own records" in rows["rescheduling"]
    assert "No effect" in rows["usage"]
    assert "Not supplied" in rows["usage"]
    assert "It has no effect." in rows["usage"]


def test_default_policy_has_no_warnings(people: People, ada: Client) -> None:
    page = page_of(ada)
    assert "conformance" in page
    assert "lack an input" not in page
    assert policy_check.warnings(people.cluster, parse(DEFAULT_POLICY_TEXT)) == []


def test_table_is_bounded(people: People, ada: Client) -> None:
    activate(people, POLICY % ", ".join(["{name: usage}"] * 300))
    page = page_of(ada)
    assert page.count('<th scope="row">usage</th>') < 100
    assert page.count("“usage” needs an input") == 100
    assert "and 203 more" in page


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("actions: allocate\n", "This policy has no plugins"),
        ("actions: allocate\ntiers: [{plugins: [{name: removed}]}]\n", "This policy is not valid"),
    ],
)
def test_page_says_what_to_do_without_a_table(people: People, ada: Client, text: str, expected: str) -> None:
    activate(people, text)
    assert expected in page_of(ada)


def test_policy_of_a_cluster_that_volcano_schedules_has_no_inputs(people: People, ada: Client) -> None:
    Cluster.objects.filter(pk=people.cluster.pk).update(kind="kubernetes", config={"scheduler": "volcano"})
    page = page_of(ada, text=POLICY % "{name: nodegroup}")
    assert "Volcano schedules this cluster" in page
    assert PolicyVersion.objects.count() == 1


def test_page_makes_few_queries(
    people: People, ada: Client, django_assert_max_num_queries: Callable[..., object]
) -> None:
    activate(people, POLICY % "{name: usage}, {name: nodegroup}")
    page_of(ada)
    with django_assert_max_num_queries(MOST_QUERIES):
        page_of(ada)


def test_warnings_over_rest(people: People) -> None:
    client = APIClient()
    client.force_authenticate(people.ada)
    address = reverse("api:v1:policy", args=["sim"])
    assert client.get(address).json()["warnings"] == []
    made = client.put(address, {"text": POLICY % "{name: usage}"}, format="json").json()
    (warning,) = made["warnings"]
    assert (warning["path"], warning["plugin"]) == ("tiers[1].plugins[0].name", "usage")
    assert (warning["input"], warning["lack"]) == ("node_usage", "nothing")
    assert "measured usage of nodes" in warning["message"]
    assert client.get(address).json()["warnings"] == [warning]

    wanted = {"text": POLICY % "{name: nodegroup}"}
    trial = client.post(f"{address}/trial", wanted, format="json").json()
    assert [one["lack"] for one in trial["warnings"]] == ["refuses_all"]
    refused = client.put(address, wanted, format="json")
    assert refused.status_code == 400
    assert "tiers[1].plugins[0].name" in refused.content.decode()
    assert client.get(address).json()["number"] == 1


def test_active_policy_with_a_removed_plugin_can_be_read_over_rest(people: People) -> None:
    activate(people, POLICY % "{name: removed}")
    client = APIClient()
    client.force_authenticate(people.ada)
    assert client.get(reverse("api:v1:policy", args=["sim"])).json()["warnings"] == []


# What clusters supply.


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_every_kind_of_cluster_says_where_its_inputs_come_from(kind: str) -> None:
    found = supplies.supplied(Cluster(kind=kind), parse(DEFAULT_POLICY_TEXT))
    assert {Input.NODE_LABELS, Input.SHUFFLE_TIME} <= set(found)
    assert all(found.values())


def test_input_that_the_snapshot_does_not_pass_on_is_not_supplied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supplies, "FROM_BACKENDS", frozenset())
    assert Input.NODE_LABELS not in supplies.supplied(Cluster(kind="simulated"), parse(DEFAULT_POLICY_TEXT))
    with pytest.raises(Invalid, match="labels of nodes"):
        policy_check.parse_for(Cluster(kind="simulated"), POLICY % "{name: nodegroup, arguments: {strict: false}}")


def test_hypernodes_are_supplied_if_nodes_are_in_some(people: People) -> None:
    def source() -> str | None:
        return supplies.supplied(people.cluster, parse(DEFAULT_POLICY_TEXT)).get(Input.HYPERNODES)

    people.cluster.kind = "kubernetes"
    assert source() is None
    Node.objects.update(hypernodes=[{"name": "rack-a", "tier": 1, "tier_name": "rack"}])
    assert source() == "HyperNode objects of the cluster"
    people.cluster.config["topology_labels"] = ["zone"]
    assert source() == "topology_labels of the cluster: zone"
    people.cluster.kind, people.cluster.config = "simulated", {}
    assert source() is None


def test_snapshot_contains_reported_hypernodes(people: People) -> None:
    rack, hall = {"name": "r", "tier": 1, "tier_name": "rack"}, {"name": "h", "tier": 2, "tier_name": ""}
    facts = NodeFacts("n2", {"cpu": "4"}, {}, hypernodes=[hall])
    clusters.observe_nodes(people.cluster, [facts], now=clock.now())
    Node.objects.filter(name="n1").update(hypernodes=[rack, hall])
    state = read_snapshot(people.cluster, now=clock.now()).state
    assert state.hyper_nodes == (
        HyperNode("r", 1, frozenset({"n1"}), "rack"),
        HyperNode("h", 2, frozenset({"n1", "n2"})),
    )


def test_snapshot_contains_what_it_supplies(people: People) -> None:
    priorities.create(name="high", values={"value": 10}, actor=PLATFORM, now=clock.now())
    notes = {"volcano.sh/qos-level": "BE", "volcano.sh/sla-waiting-time": "1h"}
    spread = {
        "max_skew": 1,
        "topology_key": "zone",
        "when_unsatisfiable": "DoNotSchedule",
        "label_selector": {"match_labels": {"app": "a"}},
    }
    task = {
        "name": "main",
        "command": ["true"],
        "image": "tool:1",
        "host_ports": [{"host_port": 9000, "container_port": 80}],
        "labels": {"app": "a"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "topology_spread_constraints": [spread],
        "partition_size": 1,
        "min_partitions": 1,
        "resource_claims": [{"name": "gpu", "resource_claim_template_name": "one"}],
        "volume_mounts": [{"name": name, "mount_path": f"/{name}"} for name in ("data", "out")],
    }
    volumes = [
        {"name": "data", "volume_claim_name": "data"},
        {"name": "out", "volume_claim": {"storage": "1Gi", "storage_class": "disks"}},
    ]
    near = {"mode": "soft"}
    job = people.submit(annotations=notes, priority_class="high", tasks=[task], volumes=volumes, network_topology=near)
    people.cluster.config.update(topology_labels=["zone"], storage=True)
    people.cluster.save()
    pod = {"task": "main", "index": 0, "attempt": 1, "slot": 0, "version": job.version, "phase": "bound", "node": "n1"}
    Pod.objects.create(job=job, created_at=NOON, bound_at=NOON, annotations={"volcano.sh/gpu-index": "0"}, **pod)
    Node.objects.update(
        labels={"zone": "a"},
        taints=["gpu=yes:NoSchedule"],
        annotations={"hekla.io/cached-datasets": "faces"},
        images={"tool:1": 5},
        images_digest="5",
        numa=NumaTopology("restricted", "static", ((4, 0),)).as_data(),
    )
    usage = {"at": NOON, "cpu": 20, "memory": 30, "whole_cpu": 8000, "whole_memory": 2**34}
    NodeUsageRow.objects.create(node=Node.objects.get(), **usage)
    Lease.objects.create(cluster=people.cluster, holder="", expires_at=NOON, last_shuffle_at=NOON)
    budget = {"metadata": {"namespace": "", "name": "b"}, "spec": {"selector": {}, "minAvailable": 1}}
    for kind, digest, body in (
        ("ResourceClaimTemplate", "1", TEMPLATE),
        ("PersistentVolumeClaim", "2", VOLUME_CLAIM),
        ("StorageClass", "3", {"metadata": {"name": "disks"}, "provisioner": "disks.test"}),
        ("PodDisruptionBudget", "4", budget),
    ):
        ClusterObject.objects.create(cluster=people.cluster, kind=kind, name=kind, digest=digest, body=body)
    Queue.objects.update(required_node_groups=["a100"], hierarchy="root/vision")
    state = read_snapshot(people.cluster, now=clock.now()).state
    (group,), (node,) = state.jobs, state.nodes
    (placed,) = group.pods
    found = {
        Input.JOB_ANNOTATIONS: group.annotations == notes,
        Input.POD_ANNOTATIONS: placed.annotations["volcano.sh/qos-level"] == "BE",
        Input.POD_CARDS: placed.annotations["volcano.sh/gpu-index"] == "0",
        Input.PRIORITY_CLASSES: placed.priority_class == "high",
        Input.PLACEMENT_TIMES: placed.scheduled_at == NOON.timestamp(),
        Input.SHUFFLE_TIME: state.last_shuffle_at == NOON.timestamp(),
        Input.POD_LABELS: placed.labels.items() >= {"app": "a"}.items() and placed.has_more_labels,
        Input.SUB_GROUPS: [(one.name, one.size, one.at_least) for one in group.sub_groups] == [("main", 1, 1)],
        Input.POD_IMAGES: placed.constraints.images == ("tool:1",),
        Input.TOLERATIONS: [one.key for one in placed.tolerations] == ["gpu"],
        Input.AFFINITY: [one.topology_key for one in placed.constraints.topology_spread] == ["zone"],
        Input.HOST_PORTS: [one.port for one in placed.constraints.host_ports] == [9000],
        Input.QUEUE_ANNOTATIONS: state.queues[0].annotations == {"volcano.sh/hierarchy": "root/vision"},
        Input.QUEUE_NODE_GROUPS: state.queues[0].affinity == NodeGroupAffinity(required=("a100",)),
        Input.JOB_TOPOLOGY: group.topology == NetworkTopology(is_hard=False),
        Input.HYPERNODES: [(one.name, one.nodes) for one in state.hyper_nodes] == [("a", {"n1"})],
        Input.DEVICES: state.devices.claims[placed.constraints.device_claims[0]].requests[0].name == "card",
        Input.STORAGE: [state.storage.claims[name].storage_class for name in placed.constraints.volume_claims]
        == ["local", "disks/"],
        Input.POD_LIMITS: placed.limits == placed.request,
        Input.NUMA_CELLS: node.numa == Numa("restricted", "static", (NumaCell(FOUR_CPUS, NO_CPU),)),
        Input.BUDGETS: [one.pods for one in state.budgets] == [{placed.uid}],
        Input.NODE_LABELS: node.labels == {"zone": "a"},
        Input.NODE_TAINTS: [one.key for one in node.taints] == ["gpu"],
        Input.NODE_ANNOTATIONS: node.annotations == {"hekla.io/cached-datasets": "faces"},
        Input.NODE_USAGE: node.usage == NodeUsage(20, 30, NOON.timestamp(), (8000, 2**34)),
        Input.NODE_IMAGES: node.images == {"tool:1": 5},
    }
    assert found == dict.fromkeys([*supplies.FROM_ROWS, *supplies.FROM_BACKENDS], True)


DISKS = {"metadata": {"name": "disks"}, "provisioner": "disks.test"}
LOCAL = {"metadata": {"name": "local"}, "volumeBindingMode": "WaitForFirstConsumer"}
DEFAULT = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}


@pytest.mark.parametrize(
    ("classes", "wanted", "storage_class", "provisions"),
    [
        ([LOCAL], "local", "local", False),
        ([LOCAL | {"metadata": {"name": "local", **DEFAULT}}], "", "local", False),
        ([DISKS], "disks", "disks/", True),
        ([], "", "/", True),
        ([], "unknown", "unknown", False),
    ],
)
def test_claim_of_a_job_counts_before_it_exists(
    people: People, classes: list[dict[str, Any]], wanted: str, storage_class: str, provisions: bool
) -> None:
    people.cluster.config["storage"] = True
    people.cluster.save()
    for one in classes:
        name = one["metadata"]["name"]
        ClusterObject.objects.create(cluster=people.cluster, kind="StorageClass", name=name, digest=name, body=one)
    mount = {"name": "out", "mount_path": "/out"}
    task = {"name": "main", "command": ["true"], "volume_mounts": [mount]}
    job = people.submit(
        tasks=[task], volumes=[{"name": "out", "volume_claim": {"storage": "1Gi", "storage_class": wanted}}]
    )
    storage = read_snapshot(people.cluster, now=clock.now()).state.storage
    claim = storage.claims[f"/{job.uid.hex}/out"]
    assert (claim.storage_class, claim.size, claim.access_modes) == (storage_class, 2**30, {"ReadWriteOnce"})
    assert storage.classes[storage_class].provisions is provisions
    people.cluster.config["storage"] = False
    people.cluster.save()
    assert not read_snapshot(people.cluster, now=clock.now()).state.storage.claims
