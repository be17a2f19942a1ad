"""Queues, nodes, clusters, retention, quotas and priority classes over REST."""

import json
from dataclasses import replace

import pytest
from rest_framework.renderers import JSONRenderer

from hekla.api import throttles
from hekla.api.v1.serializers import NodeSerializer
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster, Node, NodeFacts, NodeUsageRow
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Pod
from hekla.apps.queues.models import Queue
from hekla.lib import clock
from hekla.simulation.snapshot_cache import looking_at

QUEUES = "/api/v1/queues"


def names(answer):
    return sorted(thing["name"] for thing in answer.json())


def test_list_has_the_queues_of_the_reader(alice, charlie, root):
    assert names(alice.get(QUEUES)) == ["default"]
    assert names(charlie.get(QUEUES)) == ["default", "theirs"]
    assert names(root.get(QUEUES)) == ["default", "theirs"]
    assert alice.get(f"{QUEUES}/theirs").status_code == 404


def test_tenants_of_a_queue_are_for_admins_only(charlie, root):
    assert "parent" not in charlie.get(f"{QUEUES}/theirs").json()
    assert "tenants" not in charlie.get(f"{QUEUES}/theirs").json()
    assert all("tenants" not in queue for queue in charlie.get(QUEUES).json())
    assert root.get(f"{QUEUES}/theirs").json()["tenants"] == ["other"]


def test_admins_create_and_change_queues(root, alice):
    fields = {"name": "gpu", "cluster": "sim", "weight": 3, "capability": {"cpu": "2"}, "tenants": ["lab"]}
    made = root.post(QUEUES, fields, format="json")
    assert (made.status_code, made.json()["weight"], made.json()["tenants"]) == (201, 3, ["lab"])
    changed = root.patch(f"{QUEUES}/gpu", {"weight": 5, "is_open": False, "tenants": []}, format="json").json()
    assert (changed["weight"], changed["is_open"], changed["tenants"]) == (5, False, [])
    assert alice.get(f"{QUEUES}/gpu").json()["weight"] == 5
    again = root.post(QUEUES, fields, format="json")
    assert (again.status_code, again.json()["errors"][0]["path"]) == (409, "name")


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"cluster": "nowhere"}, "cluster"),
        ({"name": "a b"}, "name"),
        ({"weight": 0}, "weight"),
        ({"capability": {"cpu": "lots"}}, "capability"),
        ({"tenants": ["nobody"]}, "tenants"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_wrong_queues_are_refused_by_field(root, fields, path):
    answer = root.post(QUEUES, {"name": "gpu", "cluster": "sim", **fields}, format="json")
    assert answer.status_code == 400
    assert path in {error["path"].partition(".")[0] for error in answer.json()["errors"]}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"guarantee": {"cpu": "3"}}, "guarantee"),
        ({"deserved": {"cpu": "5"}}, "deserved"),
        ({"deserved": {"cpu": "lots"}}, "deserved"),
        ({"guarantee": {"memory": "2Gi"}, "capability": {"memory": "1Gi"}}, "guarantee"),
        ({"parent": "nowhere"}, "parent"),
        ({"parent": "whole"}, "parent"),
        ({"parent": "part"}, "parent"),
    ],
)
def test_contradicting_queue_settings_are_refused(root, change, path):
    whole = {"name": "whole", "cluster": "sim", "capability": {"cpu": "4"}, "deserved": {"cpu": "2"}}
    assert root.post(QUEUES, whole, format="json").status_code == 201
    part = root.post(QUEUES, {"name": "part", "cluster": "sim", "parent": "whole"}, format="json").json()
    assert part["parent"] == "whole"
    answer = root.patch(f"{QUEUES}/whole", change, format="json")
    assert answer.status_code == 400
    assert path in {error["path"].partition(".")[0] for error in answer.json()["errors"]}


def test_change_of_parent_is_recorded(root):
    assert root.post(QUEUES, {"name": "whole", "cluster": "sim"}, format="json").status_code == 201
    assert root.patch(f"{QUEUES}/default", {"parent": "whole"}, format="json").json()["parent"] == "whole"
    assert root.patch(f"{QUEUES}/default", {"parent": None}, format="json").json()["parent"] is None
    changes = [event.payload["changes"] for event in LoggedEvent.objects.filter(kind="QueueChanged").order_by("id")]
    assert changes == [{"parent": {"old": "", "new": "whole"}}, {"parent": {"old": "whole", "new": ""}}]


def test_name_of_a_queue_cannot_change(root):
    answer = root.patch(f"{QUEUES}/default", {"name": "other"}, format="json")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, "name")


def test_queue_shares_have_shares_and_positions(alice, charlie, a_job):
    for name, client in (("first", alice), ("second", charlie), ("third", alice)):
        assert client.post("/api/v1/jobs", {**a_job, "name": name}, format="json").status_code == 201
    body = alice.get(f"{QUEUES}/default/shares").json()
    assert [(job["place"], job["name"]) for job in body["in_line"]] == [(1, "first"), (3, "third")]
    assert (body["waiting"], body["inside"]) == (3, 0)
    assert (body["shares"]["divided_by"], body["shares"]["pending"]["cpu"]) == ("proportion", "3")
    assert (body["shares"]["held"], body["shares"]["bound"]["cpu"]) == ({}, "4")
    assert alice.get(f"{QUEUES}/theirs/shares").status_code == 404


def test_previews_of_changes_are_throttled(root, monkeypatch):
    monkeypatch.setattr(throttles, "WHAT_IFS", 1)
    answers = [root.post(f"{QUEUES}/default/preview", {"weight": 2}, format="json") for _ in range(3)]
    assert (answers[0].status_code, answers[-1].status_code) == (200, 429)
    assert answers[-1].headers["Retry-After"].isdecimal()


def test_searches_are_throttled_apart_from_other_requests(alice, monkeypatch):
    monkeypatch.setattr(throttles, "SEARCHES", 1)
    answers = [alice.get("/api/v1/search?q=default") for _ in range(3)]
    assert (answers[0].status_code, answers[-1].status_code) == (200, 429)
    assert alice.get("/api/v1/jobs").status_code == 200


def test_preview_of_a_change_changes_nothing(root, alice, a_job):
    alice.post("/api/v1/jobs", a_job, format="json")
    body = root.post(f"{QUEUES}/default/preview", {"capability": {"cpu": "3"}}, format="json").json()
    assert [body[when]["default"]["bound"]["cpu"] for when in ("before", "after")] == ["4", "3"]
    assert body["losses"] == []
    assert root.get(f"{QUEUES}/default").json()["capability"] == {}
    wrong = root.post(f"{QUEUES}/default/preview", {"guarantee": {"cpu": "3"}, "deserved": {"cpu": "2"}}, format="json")
    assert (wrong.status_code, wrong.json()["errors"][0]["path"]) == (400, "guarantee")
    assert alice.post(f"{QUEUES}/default/preview", {"weight": 2}, format="json").status_code == 403


def test_unknown_resources_of_queues_are_refused_unless_confirmed(root):
    change = {"capability": {"gpu": "8"}}
    for refused in (
        root.patch(f"{QUEUES}/default", change, format="json"),
        root.post(f"{QUEUES}/default/preview", change, format="json"),
        root.post(QUEUES, {"name": "fresh", "cluster": "sim"} | change, format="json"),
    ):
        assert (refused.status_code, refused.json()["errors"][0]["path"]) == (400, "capability")
    confirmed = root.patch(f"{QUEUES}/default", change | {"allow_unknown_resources": True}, format="json").json()
    assert (confirmed["capability"], "allow_unknown_resources" in confirmed) == ({"gpu": "8"}, False)


def test_guarantees_beyond_the_cluster_are_warned_of(root):
    fields = {"guarantee": {"cpu": "40"}}
    warning = "The queues of this cluster are guaranteed 40 CPU in total. The cluster has 4 CPU."
    preview = root.post(f"{QUEUES}/default/preview", fields, format="json").json()
    assert preview["warnings"] == [warning]
    assert "Queue theirs can use at most 0 CPU, instead of 4 CPU." in preview["effects"]
    assert root.patch(f"{QUEUES}/default", fields, format="json").json()["warnings"] == [warning]
    assert root.patch(f"{QUEUES}/default", {"guarantee": {"cpu": "4"}}, format="json").json()["warnings"] == []


def test_draining_queue_refuses_jobs(root, alice, a_job):
    assert root.patch(f"{QUEUES}/default", {"state": "draining"}, format="json").json()["is_open"] is False
    body = alice.get(f"{QUEUES}/default").json()
    assert (body["state"], "state: Closing" in body["manifest"]) == ("draining", True)
    refused = alice.post("/api/v1/jobs", a_job, format="json").json()
    assert (refused["code"], "(by root) and accepts no jobs." in refused["detail"]) == ("queue_closed", True)
    assert root.patch(f"{QUEUES}/default", {"state": "asleep"}, format="json").status_code == 400
    assert root.patch(f"{QUEUES}/default", {"is_open": True}, format="json").json()["state"] == "open"


def test_members_do_not_manage_queues(alice):
    assert alice.post(QUEUES, {"name": "gpu", "cluster": "sim"}, format="json").status_code == 403
    assert alice.patch(f"{QUEUES}/default", {"weight": 9}, format="json").status_code == 403


def test_node_reports_used_resources(alice, a_job, world):
    assert alice.get("/api/v1/nodes").json()[0]["used"] == {}
    alice.post("/api/v1/jobs", a_job, format="json")
    row = world.people["alice"].jobs.get()
    Pod.objects.create(
        job=row,
        task="worker",
        index=0,
        attempt=0,
        version=1,
        slot=1,
        phase="running",
        node="n",
        created_at=row.submitted_at,
    )
    node = alice.get("/api/v1/nodes").json()[0]
    assert (node["name"], node["cluster"], node["allocatable"]["cpu"], node["used"]["cpu"]) == ("n", "sim", "4", "1")


def test_dry_run_of_a_queue_warns_and_leaves_nothing(world):
    sim, root = Cluster.objects.get(name="sim"), world.as_("root")
    clusters.observe_nodes(sim, [NodeFacts("n", {"cpu": "4"}, {})], now=clock.now())
    body = {"name": "wide", "cluster": "sim", "guarantee": {"cpu": "40"}}
    for _ in range(2):  # the second time, queues are cached
        tried = root.post("/api/v1/queues?dry_run=1", body, format="json")
        assert tried.status_code == 200, tried.json()
        (warning,) = tried.json()["warnings"]
        assert "guaranteed 40 CPU in total" in warning
        with looking_at(sim) as outlook:
            assert "wide" not in {queue.name for queue in outlook.snapshot.state.queues}


def test_node_is_as_documented(alice):
    card = {"resource": "nvidia.com/gpu", "index": 0, "id": "", "model": "A100", "memory_mib": 0, "is_healthy": True}
    level = {"name": "rack-1", "tier": 1, "tier_name": "rack"}
    labels = {"topology.kubernetes.io/zone": "a", "disk": "ssd"}
    facts = NodeFacts("n", {"cpu": "4"}, labels, message="well", taints=["a=b:NoSchedule"], cards=[card])
    facts = replace(facts, hypernodes=[level], numa={"policies": {}})
    clusters.observe_nodes(Cluster.objects.get(name="sim"), [facts], now=clock.now())
    busy = {"resource": "nvidia.com/gpu", "index": 0, "busy": 12.5, "memory_mib": 7}
    row, measured = Node.objects.get(), {"at": clock.now(), "cpu": 37.5, "memory": 13}
    NodeUsageRow.objects.create(node=row, cards=[busy], whole_cpu=4000, whole_memory=1, **measured)
    (node,) = alice.get("/api/v1/nodes").json()
    row.used = {}
    row.usage.refresh_from_db()
    assert node == json.loads(JSONRenderer().render(NodeSerializer(row).data))
    assert (node["cards"], node["usage"]["cards"]) == ([card], [{**busy, "busy": 12}])
    assert node["usage"]["measured_at"] == f"{measured['at']:%Y-%m-%dT%H:%M:%S.%fZ}"


def test_node_reports_its_taints(alice):
    assert alice.get("/api/v1/nodes").json()[0]["taints"] == []
    facts = NodeFacts("n", {"cpu": "4"}, {}, taints=["gpu=yes:NoSchedule"])
    clusters.observe_nodes(Cluster.objects.get(name="sim"), [facts], now=clock.now())
    assert alice.get("/api/v1/nodes").json()[0]["taints"] == ["gpu=yes:NoSchedule"]


def test_clusters_and_environments_are_listed(alice):
    assert names(alice.get("/api/v1/clusters")) == ["sim"]
    assert alice.get("/api/v1/environments").json() == []


RETENTION = "/api/v1/tenants/lab/retention"


def test_retention_is_set_by_admins(world, alice, charlie):
    root = world.as_("root")
    assert alice.get(RETENTION).json() == {"log_days": 30, "history_days": 365}
    assert root.patch(RETENTION, {"log_days": 7}, format="json").json() == {"log_days": 7, "history_days": 365}
    assert root.patch(RETENTION, {"log_days": 7}, format="json").status_code == 200
    changes = [event.payload["changes"] for event in LoggedEvent.objects.filter(kind="TenantChanged")]
    assert changes == [{"log_days": {"old": 30, "new": 7}}]
    assert alice.patch(RETENTION, {"log_days": 1}, format="json").status_code == 403
    assert charlie.get(RETENTION).status_code == 404


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"log_days": -1}, "log_days"),
        ({"log_days": 4000}, "log_days"),
        ({"log_days": "many"}, "log_days"),
        ({"history_days": 0}, "history_days"),
        ({"history_days": 29}, "history_days"),
        ({"log_days": 366}, "history_days"),
    ],
)
def test_invalid_retention_is_refused_at_its_field(world, fields, path):
    answer = world.as_("root").patch(RETENTION, fields, format="json")
    assert answer.status_code in {400, 422}
    assert [error["path"] for error in answer.json()["errors"]] == [path]


QUEUE = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: vision}
spec: {weight: 3, capability: {cpu: 4}, guarantee: {resource: {cpu: 2}}, parent: default, dequeueStrategy: fifo}
"""


def post_yaml(client, text):
    return client.post(QUEUES, text, content_type="application/yaml")


def test_volcano_queue_manifest_round_trips(root, charlie):
    made = post_yaml(root, QUEUE)
    assert (made.status_code, made.json()["weight"], made.json()["cluster"]) == (201, 3, "sim")
    assert [warning.partition(":")[0] for warning in made.json()["warnings"]] == ["spec.dequeueStrategy"]
    manifest = root.get(f"{QUEUES}/vision").json()["manifest"]
    assert "parent: default" in manifest
    assert "parent" not in charlie.get(f"{QUEUES}/vision").json()["manifest"]
    again = post_yaml(root, manifest.replace("name: vision", "name: second"))
    assert again.json()["warnings"] == []
    first, second = (root.get(f"{QUEUES}/{name}").json() for name in ("vision", "second"))
    assert {**first, "name": "", "manifest": ""} == {**second, "name": "", "manifest": ""}


def test_members_cannot_create_queues_by_manifest(alice):
    assert post_yaml(alice, QUEUE).status_code == 403


@pytest.mark.parametrize(
    ("old", "new", "status", "path"),
    [
        ("weight: 3", "weight: 0", 400, "spec.weight"),
        ("capability: {cpu: 4}", "capability: {cpu: lots}", 400, "spec.capability"),
        ("{cpu: 2}", "{cpu: 5}", 400, "spec.guarantee.resource"),
        ("parent: default", "parent: nowhere", 400, "spec.parent"),
        ("name: vision", "name: theirs", 409, "metadata.name"),
        ("{name: vision}", "{name: vision, annotations: {hekla.io/cluster: b}}", 400, "annotations.hekla.io/cluster"),
        ("kind: Queue", "kind: Job", 400, ""),
    ],
)
def test_manifest_errors_have_paths(root, old, new, status, path):
    answer = post_yaml(root, QUEUE.replace(old, new))
    assert answer.status_code == status
    assert path in " ".join(error["path"] for error in answer.json()["errors"])


def test_manifest_must_name_the_cluster_if_there_are_several(root):
    clusters.create(name="other", kind="simulated", config={"nodes": []}, actor=PLATFORM, now=clock.now())
    answer = post_yaml(root, QUEUE)
    assert answer.status_code == 400
    assert "sim, other" in answer.json()["detail"]
    annotated = QUEUE.replace("{name: vision}", "{name: vision, annotations: {hekla.io/cluster: other}}")
    annotated = annotated.replace("parent: default, ", "")
    assert post_yaml(root, annotated).json()["cluster"] == "other"


@pytest.mark.parametrize(
    ("document", "status"),
    [
        ({"of": "one", "username": "alice"}, 200),
        ({"of": "one", "username": "nobody"}, 400),
        ({"of": "one"}, 400),
        ({"of": "tenant"}, 200),
        ({"of": "tenant", "username": "alice"}, 400),
        ({"of": "tenant", "username": "nobody"}, 400),
    ],
)
def test_only_a_quota_of_one_member_names_a_person(root, document, status):
    answer = root.put("/api/v1/tenants/lab/quotas", {**document, "sessions": 1}, format="json")
    assert answer.status_code == status


def test_quotas_are_set_and_enforced(root, alice, a_job):
    address = "/api/v1/tenants/lab/quotas"
    fields = {"of": "tenant", "jobs": 0, "gpu_hours": None}
    assert alice.put(address, fields, format="json").status_code == 403
    rows = root.put(address, fields, format="json").json()
    assert (rows[0]["username"], rows[0]["jobs"], rows[0]["most_jobs"]) == (None, 0, 0)
    refused = alice.post("/api/v1/jobs", a_job, format="json")
    assert (refused.status_code, refused.json()["code"]) == (409, "quota_exceeded")
    dry = alice.post("/api/v1/jobs?dry_run=1", a_job, format="json")
    assert (dry.status_code, dry.json()["detail"]) == (409, refused.json()["detail"])
    one = {"of": "one", "username": "bob", "jobs": 3, "gpu_hours": 7}
    assert [row["most_gpu_hours"] for row in root.put(address, one, format="json").json()] == [None, None, 7]
    assert [row["username"] for row in alice.get(address).json()] == [None, "alice"]
    assert root.put(address, {**one, "username": "charlie"}, format="json").status_code == 400
    unlimited = root.put(address, {"of": "one", "username": "bob", "jobs": None}, format="json").json()[2]
    assert (unlimited["most_jobs"], unlimited["most_gpu_hours"]) == (None, 7)
    at_once = {"of": "tenant", "jobs": None, "resources": {"cpu": "1"}}
    row = root.put(address, at_once, format="json").json()[0]
    assert (row["most_resources"], row["resources"]) == ({"cpu": "1"}, {})
    big = {**a_job, "tasks": [{**a_job["tasks"][0], "resources": {"cpu": "2"}}]}
    refusal = alice.post("/api/v1/jobs", big, format="json").json()["errors"][0]["message"]
    assert "One replica requests 2 of cpu. The quota of Lab is 1." in refusal
    wrong = root.put(address, {**at_once, "resources": {"gpu": "1"}}, format="json").json()
    assert "Unknown resource “gpu”" in str(wrong)


def test_priority_classes_are_created_used_and_deleted(root, alice, a_job):
    address = "/api/v1/priority-classes"
    fields = {"name": "high", "value": 100, "tenants": ["lab"], "is_offered": True}
    assert alice.post(address, fields, format="json").status_code == 403
    assert root.post(address, fields, format="json").json()["tenants"] == ["lab"]
    assert [one["name"] for one in alice.get(address).json()] == ["high"]
    job = alice.post("/api/v1/jobs", {**a_job, "priority_class": "high"}, format="json").json()["job"]
    assert job["priority"] == 100
    changed = root.patch(f"{address}/high", {"value": 5, "tenants": []}, format="json").json()
    assert (changed["value"], changed["tenants"]) == (5, [])
    wrong = alice.post("/api/v1/jobs", {**a_job, "name": "other", "priority_class": "low"}, format="json").json()
    assert wrong["errors"][0]["path"] == "priority_class"
    assert root.delete(f"{address}/high").status_code == 204
    assert alice.get(f"/api/v1/jobs/{job['uid']}").json()["priority"] == 100
    assert root.delete(f"{address}/high").status_code == 404


def test_dry_run_creates_no_queue(root, alice):
    def check(client, text):
        return client.post(f"{QUEUES}?dry_run=1", text, content_type="application/yaml")

    checked = check(root, QUEUE)
    assert (checked.status_code, checked.json()["name"]) == (200, "vision")
    assert not Queue.objects.filter(name="vision").exists()
    assert check(root, QUEUE.replace("apiVersion: scheduling", "apiVersion: other")).status_code == 400
    assert check(alice, QUEUE).status_code == 403
    assert root.post(f"{QUEUES}?dry_run=1", {"name": "x", "cluster": "nowhere"}, format="json").status_code == 400


SETTINGS = {
    "job_order": "fair",
    "required_node_groups": ["a100", "h100"],
    "preferred_node_groups": ["h100"],
    "excluded_node_groups": ["old"],
    "avoided_node_groups": ["a100"],
    "node_group_limits": {"a100": {"nvidia.com/gpu": "4"}},
    "card_quota": {"NVIDIA-A100": 8, "NVIDIA-H100/mig-1g.10gb-mixed": 0},
    "hierarchy": "root/science/vision",
    "hierarchy_weights": "1/2/4",
}


def test_settings_for_plugins_are_saved_recorded_and_round_trip(root):
    changed = root.patch(f"{QUEUES}/default", SETTINGS, format="json").json()
    assert {name: changed[name] for name in SETTINGS} == SETTINGS
    assert changed["warnings"] == [
        "No node of cluster sim is in node groups a100, h100, old (label volcano.sh/nodegroup-name).",
        "No node of cluster sim has cards of the models NVIDIA-A100, NVIDIA-H100/mig-1g.10gb-mixed. It has: –.",
        "Node groups: no effect, because the policy of cluster sim does not use nodegroup.",
        "Card limits: no effect, because the policy of cluster sim does not use capacity-card.",
        "Hierarchy: no effect, because the policy of cluster sim does not use drf (enableHierarchy: true).",
    ]
    event = LoggedEvent.objects.get(kind="QueueChanged")
    assert event.payload["changes"]["required_node_groups"] == {"old": [], "new": ["a100", "h100"]}
    manifest = root.get(f"{QUEUES}/default").json()["manifest"].replace("name: default", "name: copy")
    refused = post_yaml(root, manifest)
    assert "No path can be a part of another" in refused.json()["detail"]
    made = post_yaml(root, manifest.replace("science/vision", "science/copy").replace("1/2/4", "1/3/4"))
    assert {name: made.json()[name] for name in SETTINGS} == SETTINGS | {
        "hierarchy": "root/science/copy",
        "hierarchy_weights": "1/3/4",
    }
    other = "Queue default gives root/science another weight: 2. The scheduler uses one of the two."
    assert other in made.json()["warnings"]


def test_settings_for_plugins_are_previewed(root):
    preview = root.post(f"{QUEUES}/default/preview", {"avoided_node_groups": ["x"]}, format="json").json()
    assert "No node of cluster sim is in node group x (label volcano.sh/nodegroup-name)." in preview["warnings"]
    assert root.get(f"{QUEUES}/default").json()["avoided_node_groups"] == []


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"job_order": "dice"}, "job_order"),
        ({"required_node_groups": "a100"}, "required_node_groups"),
        ({"required_node_groups": [{}]}, "required_node_groups.0"),
        ({"required_node_groups": ["a b"]}, "required_node_groups"),
        ({"excluded_node_groups": ["g"] * 65}, "excluded_node_groups"),
        ({"node_group_limits": {"a": {"cpu": "lots"}}}, "node_group_limits.a"),
        ({"node_group_limits": {"a": 3}}, "node_group_limits.a"),
        ({"card_quota": {"A100": "many"}}, "card_quota.A100"),
        ({"card_quota": {"A100": -1}}, "card_quota.A100"),
        ({"card_quota": {"A 100": 1}}, "card_quota"),
        ({"card_quota": {f"m{n}": 1 for n in range(65)}}, "card_quota"),
        ({"hierarchy": "science"}, "hierarchy"),
        ({"hierarchy": "root/" + "a" * 2000}, "hierarchy"),
        ({"hierarchy": "root/a", "hierarchy_weights": "1"}, "hierarchy_weights"),
    ],
)
def test_wrong_settings_for_plugins_are_refused_by_field(root, alice, fields, path):
    answer = root.patch(f"{QUEUES}/default", fields, format="json")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, path)
    assert alice.patch(f"{QUEUES}/default", fields, format="json").status_code == 403


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("{name: vision}", "{name: vision, annotations: {hekla.io/job-order: x}}", "annotations.hekla.io/job-order"),
        ("{name: vision}", "{name: vision, annotations: {volcano.sh/hierarchy: x}}", "volcano.sh/hierarchy"),
        (
            "spec: {",
            "spec: {affinity: {nodeGroupAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [a b]}}, ",
            "spec.affinity.nodeGroupAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        ),
    ],
)
def test_wrong_settings_in_a_manifest_have_paths(root, old, new, path):
    assert old in QUEUE
    answer = post_yaml(root, QUEUE.replace(old, new))
    assert answer.status_code == 400
    assert path in " ".join(error["path"] for error in answer.json()["errors"])
