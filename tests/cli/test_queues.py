"""Queues, quotas and priority classes on the command line."""

import json
import re

import pytest

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.queues import services as queues
from hekla.apps.queues.models import Queue
from hekla.engine.policy import DEFAULT_POLICY_TEXT
from hekla.lib import clock

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)
CARD_POLICY = DEFAULT_POLICY_TEXT.rstrip() + "\n  - name: capacity-card\n"
QUEUE = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: vision}
spec: {weight: 3, type: x}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "queue.yaml"
    path.write_text(QUEUE)
    return path


def test_operators_create_queues(console, file, world):
    refused = console("job", "submit", file)
    assert refused.exit_code == 1
    assert "vision" not in console("queue", "list").output
    world.alice.platform_role = "operator"
    world.alice.save()
    output = console("job", "submit", file).output
    assert "Note: spec.type: ignored" in output
    assert "Queue vision was created: http" in output
    assert "vision" in [queue["name"] for queue in json.loads(console("queue", "list", "--json").output)]
    assert "“vision” exists already" in console("job", "submit", file).output


def test_job_options_are_refused_for_queues(console, file):
    refused = console("job", "submit", file, "--watch")
    assert (refused.exit_code, "created from its manifest" in refused.output) == (1, True)


def test_dry_run_creates_no_queue(console, file, world):
    assert console("job", "submit", file, "--dry-run").exit_code == 1
    world.alice.platform_role = "operator"
    world.alice.save()
    checked = console("job", "submit", file, "--dry-run")
    assert (checked.exit_code, "Nothing was created" in checked.output) == (0, True)
    assert "vision" not in console("queue", "list").output
    file.write_text(QUEUE.replace("weight: 3", "weight: -3"))
    assert console("job", "submit", file, "--dry-run").exit_code == 1


def test_queue_beside_a_job_is_created_by_operators(console, manifest, tmp_path, world):
    both = tmp_path / "both.yaml"
    both.write_text(QUEUE + "---\n" + manifest().read_text())
    refused = console("job", "submit", both)
    assert refused.exit_code == 1
    assert "document 1: queue/vision failed: " in refused.output
    assert "job/talk created" in refused.output
    world.alice.platform_role = "operator"
    world.alice.save()
    both.write_text(both.read_text().replace("name: talk", "name: talk-2"))
    made = console("job", "submit", both)
    assert (made.exit_code, "queue/vision created\njob/talk-2 created\n2 of 2 documents created." in made.output) == (
        0,
        True,
    )


def test_queue_show(console, manifest):
    console("job", "submit", manifest("talk", command="[sleep, '60']"))
    output = console("queue", "show", "default").output
    assert "BORROWED" in output
    assert "jobs pending" in output
    assert json.loads(console("queue", "show", "default", "--json").output)["name"] == "default"
    assert console("queue", "show", "nowhere").exit_code == 1


def test_queues_are_listed_as_a_tree(console, world):
    now = clock.now()
    parent = queues.create(cluster=world.cluster, name="vision", actor=PLATFORM, now=now)
    queues.create(cluster=world.cluster, name="augment", values={"parent": parent}, actor=PLATFORM, now=now)
    world.alice.platform_role = "operator"
    world.alice.save()
    listed = console("queue", "list").output
    assert listed.index("\nvision") < listed.index("\n  augment")


def test_queue_preview(console, world):
    world.reconcile_until(world.cluster.nodes.exists)
    assert "does not allow" in console("queue", "preview", "default", "weight=3").output
    world.alice.platform_role = "operator"
    world.alice.save()
    assert "NEW DESERVED" in console("queue", "preview", "default", "weight=3", "capability.cpu=2").output
    assert "default is draining" in console("queue", "edit", "default", "--state", "draining").output
    preview = json.loads(console("queue", "preview", "default", "capability.cpu=2", "--json").output)
    assert preview["after"]["default"]["bound"]["cpu"] == "2"
    assert console("queue", "preview", "default", "weight").exit_code == 2


def test_queue_is_edited_by_fields(console, world):
    world.alice.platform_role = "operator"
    world.alice.save()
    edit = ("queue", "edit", "default")
    changed = console(*edit, "job_order=fifo", "required_node_groups=a,b", "hierarchy=root/x", "weight=3").output
    assert "default was changed." in changed
    assert "Note: No node of cluster" in changed
    amounts = ("capability.cpu=2", "capability.memory=1Gi", "node_group_limits.a.nvidia.com/gpu=4")
    assert console(*edit, *amounts).exit_code == 0
    assert console(*edit, "capability.memory=", "node_group_limits.b.cpu=1", "required_node_groups=").exit_code == 0
    assert console(*edit, "card_quota.NVIDIA-A100/mig-1g.5gb-mixed=4", "card_quota.T4=0").exit_code == 0
    assert console(*edit, "card_quota.T4=").exit_code == 0
    assert console(*edit, "card_quota.T4=many").exit_code == 1
    queue = Queue.objects.get()
    assert (queue.job_order, queue.required_node_groups, queue.hierarchy, queue.weight) == ("fifo", [], "root/x", 3)
    assert queue.capability == {"cpu": "2"}
    assert queue.card_quota == {"NVIDIA-A100/mig-1g.5gb-mixed": 4}
    assert queue.node_group_limits == {"a": {"nvidia.com/gpu": "4"}, "b": {"cpu": "1"}}
    assert "CARD MODEL" not in console("queue", "show", "default").output  # the policy ignores the limit
    clusters.set_policy(world.cluster, text=CARD_POLICY, note="", by=None, actor=PLATFORM, now=clock.now())
    cards = console("queue", "show", "default").output.partition("CARD MODEL")[2]
    assert re.search(r"NVIDIA-A100/mig-1g.5gb-mixed +0 +4", cards)
    assert console(*edit).exit_code == 2
    assert console(*edit, "weight.x=3").exit_code == 2


def test_unknown_resources_and_over_commitment_are_reported(console, file, world):
    world.reconcile_until(world.cluster.nodes.exists)
    world.alice.platform_role = "operator"
    world.alice.save()
    file.write_text(QUEUE.replace("type: x", "capability: {gpu: 8}"))
    refused = console("job", "submit", file)
    assert (refused.exit_code, "Unknown resource “gpu”" in refused.output) == (1, True)
    assert "Unknown resource “gpu”" in console("queue", "preview", "default", "capability.gpu=8").output
    assert "guaranteed 4000 CPU in total" in console("queue", "preview", "default", "guarantee.cpu=4000").output
    confirmed = "{name: vision, annotations: {hekla.io/allow-unknown-resources: 'true'}}"
    file.write_text(file.read_text().replace("{name: vision}", confirmed))
    assert "Queue vision was created" in console("job", "submit", file).output


def test_quotas_are_shown(console):
    assert "UNFINISHED JOBS" in console("quota", "show", "lab").output
    assert [row["username"] for row in json.loads(console("quota", "show", "lab", "--json").output)] == [None, "alice"]
    assert console("quota", "show", "nowhere").exit_code == 1


def test_hours_of_each_card_are_shown(console, world, monkeypatch):
    hours = {world.alice.pk: {"nvidia.com/gpu": 1.5, "huawei.com/Ascend910": 2.0}}
    monkeypatch.setattr("hekla.apps.jobs.spending.card_hours", lambda _tenant, _now: hours)
    assert "3.5 (huawei.com/Ascend910 2.0, nvidia.com/gpu 1.5)" in console("quota", "show", "lab").output


def test_quotas_are_set_and_checked_by_a_dry_run(console, manifest, world):
    assert "does not allow" in console("quota", "set", "lab", "--jobs", "0").output
    world.alice.platform_role = "operator"
    world.alice.save()
    assert "0 of 0" in console("quota", "set", "lab", "--jobs", "0", "--gpu-hours", "8").output
    refused = console("job", "submit", manifest("talk"), "--dry-run")
    assert (refused.exit_code, "has 0 of 0 unfinished jobs" in refused.output) == (1, True)
    assert "ask a platform admin" in console("job", "preview", manifest("talk")).output
    rows = json.loads(console("quota", "set", "lab", "--jobs", "none", "--json").output)
    assert (rows[0]["most_jobs"], rows[0]["most_gpu_hours"]) == (None, 8)
    assert console("quota", "set", "lab").exit_code == 2
    world.reconcile_until(world.cluster.nodes.exists)
    assert "at most cpu 1" in console("quota", "set", "lab", "--at-once", "cpu=1,memory=2Gi").output
    assert "at most" not in console("quota", "set", "lab", "--at-once", "none").output
    assert console("quota", "set", "lab", "--at-once", "cpu").exit_code == 2
    assert console("quota", "set", "lab", "--each", "--member", "alice", "--jobs", "1").exit_code == 2


def test_files_of_a_tenant_are_shown_and_limited(console, world):
    output = console("quota", "files", "lab").output
    assert (output.startswith("0 B\n"), "No files were measured yet." in output) == (True, True)
    assert "Only admins" in console("quota", "files", "lab", "--limit-gib", "5").output
    world.alice.platform_role = "operator"
    world.alice.save()
    assert console("quota", "files", "lab", "--limit-gib", "5").output.startswith("0 B of 5 GiB\n")
    assert json.loads(console("quota", "files", "lab", "--limit-gib", "none", "--json").output)["limit_gib"] is None


def test_priority_classes_are_set_listed_and_deleted(console, world):
    assert "No priority classes." in console("priority-class", "list").output
    assert "does not allow" in console("priority-class", "set", "high", "--value", "100").output
    world.alice.platform_role = "admin"
    world.alice.save()
    output = console("priority-class", "set", "high", "--value", "100", "--tenant", "lab", "--default").output
    assert output == "high is 100, for lab: offered, default.\n"
    changed = console("priority-class", "set", "high", "--value", "-7", "--everybody", "--never-preempts").output
    assert changed == "high is -7, for everybody: offered, default, never evicts other pods.\n"
    assert "high" in console("priority-class", "list").output
    assert console("priority-class", "delete", "high").output == "high is deleted.\n"
