"""Parsing of Volcano's objects, and the manifests sent to it."""

from dataclasses import replace
from typing import Any

import pytest

from hekla.backends.base import BackendError, StartRefused
from hekla.backends.delegated import ActionUnsupported, DelegatedJobSize, QueueOrder
from hekla.backends.kind import BackendContext
from hekla.backends.kubernetes import names, volcano_state
from hekla.backends.kubernetes.api import ApiError
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.volcano import VolcanoBackend
from hekla.backends.kubernetes.volcano_manifests import VolcanoManifests, queue_manifest
from hekla.backends.kubernetes.volcano_state import (
    job_report,
    lacks_group,
    last_messages,
    merge_patch,
    needs_message,
    new_pod,
    size_of,
    with_message,
)
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import GangPhase, JobPhase
from hekla.domain.policies import LifecycleAction
from hekla.lib.clock import now

UID = "0123456789abcdef0123456789abcdef"
UNSCHEDULABLE = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "2/2 in gang"}


def job(phase: str, **status: Any) -> dict[str, Any]:
    return {"metadata": {"uid": "j"}, "status": {"state": {"phase": phase}, **status}}


def group(phase: str, *conditions: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"uid": "g"}, "status": {"phase": phase, "conditions": list(conditions)}}


def event(uid: str, message: str, at: str) -> dict[str, Any]:
    return {"involvedObject": {"uid": uid}, "message": message, "lastTimestamp": at, "metadata": {}}


def spec(**task: Any) -> JobSpec:
    fields = {
        name: task.pop(name) for name in ("files", "plugins", "name", "ttl_seconds_after_finished") if name in task
    }
    return JobSpec.parse({"name": "job", "tasks": [{"name": "main", "command": ["x"], **task}], **fields})


def manifest_of(job_spec: JobSpec, **config: Any) -> dict[str, Any]:
    return VolcanoManifests("c1", KubernetesConfig(**config)).job(UID, job_spec, "lab")[0]


def test_new_job_without_a_status_is_pending() -> None:
    assert job_report({"metadata": {}}, None).phase is JobPhase.PENDING


@pytest.mark.parametrize("phase", ["Restarting", "Pending"])
def test_restarted_job_without_a_pod_group_is_detected(phase: str) -> None:
    assert lacks_group(job(phase, version=1), None)
    assert not lacks_group(job(phase, version=1), group("Pending"))
    assert not lacks_group(job(phase), None), "Volcano has not processed it yet"


@pytest.mark.parametrize("phase", ["Running", "Aborted", "Completed", "Failed"])
def test_job_that_needs_no_pod_group_is_left_alone(phase: str) -> None:
    assert not lacks_group(job(phase, version=1), None)


def test_size_of_a_job_is_as_sent_and_as_changed() -> None:
    first, then = spec(replicas=3), spec(replicas=4, min_available=2)
    manifest = {**manifest_of(first), "metadata": {"uid": "u", "resourceVersion": "1"}}
    assert size_of(manifest) == DelegatedJobSize.of(first)
    change = VolcanoManifests("c1", KubernetesConfig()).resized(manifest, DelegatedJobSize.of(then))
    changed = {"spec": {**manifest["spec"], **change["spec"]}}
    assert size_of(changed) == DelegatedJobSize.of(then)
    assert change["metadata"] == manifest["metadata"], "the patch fails if the job has changed since"
    (old,), (new,) = manifest["spec"]["tasks"], changed["spec"]["tasks"]
    assert {name for name in new if new[name] != old.get(name)} == {"replicas", "minAvailable"}


def test_pending_reason_is_that_of_the_pod_group() -> None:
    report = job_report(job("Pending"), group("Pending", UNSCHEDULABLE))
    assert (report.gang_phase, report.waits) == (GangPhase.PENDING, "2/2 in gang")
    assert job_report(job("Running"), group("Running", UNSCHEDULABLE)).waits == ""


def test_newest_event_is_the_reason_if_the_pod_group_has_none() -> None:
    messages = last_messages([event("g", "new", "2026-01-02T00:00:00Z"), event("g", "old", "2026-01-01T00:00:00Z")])
    report = job_report(job("Pending"), group("Pending"))
    assert with_message(report, messages, job("Pending"), group("Pending")).waits == "new"
    assert with_message(report, {"j": "about the job"}, job("Pending"), None).waits == "about the job"
    assert with_message(report, {"other": "not ours"}, job("Pending"), None).waits == ""


def test_reason_against_admission_wins_over_missing_pods() -> None:
    refused = {**event("g", "quota insufficient", "2026-01-01T00:00:00Z"), "type": "Normal", "reason": "Unschedulable"}
    messages = last_messages([refused, event("g", "0/0 tasks in gang", "2026-01-02T00:00:00Z")])
    report = job_report(job("Pending"), group("Pending", UNSCHEDULABLE))
    assert needs_message(report)
    assert with_message(report, messages, job("Pending"), group("Pending")).waits == "quota insufficient"
    assert not needs_message(job_report(job("Pending"), group("Inqueue", UNSCHEDULABLE)))


def test_replica_is_read_from_the_name_of_the_pod() -> None:
    meta = {"name": "job-01234567-main-12", "uid": "u", "labels": {names.JOB: UID, names.TASK: "main"}}
    found = new_pod({"metadata": meta})
    assert found
    assert (found.job, found.task, found.index) == (UID, "main", 12)
    assert new_pod({"metadata": {**meta, "labels": {names.JOB: UID}}}) is None


@pytest.mark.parametrize(
    ("current", "desired", "change"),
    [
        ({"weight": 1}, {"weight": 1}, {}),
        ({"weight": 1}, {"weight": 2}, {"weight": 2}),
        ({}, {"priority": 0, "capability": None}, {}),
        ({}, {"reclaimable": False}, {"reclaimable": False}),
        ({"capability": {"cpu": "1"}}, {"capability": None}, {"capability": None}),
        (
            {"capability": {"cpu": "1"}},
            {"capability": {"memory": "1Gi"}},
            {"capability": {"cpu": None, "memory": "1Gi"}},
        ),
        ({"theirs": 1}, {"weight": 1}, {"weight": 1}),
    ],
)
def test_queue_patch_contains_only_differences(current, desired, change) -> None:
    assert merge_patch(current, desired) == change


def test_removed_limit_of_a_queue_is_deleted() -> None:
    order = QueueOrder("q", weight=1, priority=0, reclaimable=True)
    manifest = queue_manifest(order, "c1", "scheduling.volcano.sh/v1beta1")
    assert volcano_state.merge_patch({"weight": 1, "reclaimable": True, "parent": "root", "deserved": {"cpu": "1"}},
                                      manifest["spec"]) == {"deserved": None}  # fmt: skip


def test_settings_of_a_queue_are_set_and_removed_in_the_cluster() -> None:
    notes = {"volcano.sh/hierarchy": "root/a"}
    affinity = {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["a100"]}}
    plain = QueueOrder("q", weight=1, priority=0, reclaimable=True)
    wanted = queue_manifest(replace(plain, annotations=notes, affinity=affinity), "c1", "v1beta1")
    bare = queue_manifest(plain, "c1", "v1beta1")
    assert "annotations" not in bare["metadata"]
    found = {"metadata": {"annotations": {"theirs": "x"}}, "spec": bare["spec"]}
    assert volcano_state.queue_patch(found, bare) == {}
    change = volcano_state.queue_patch(found, wanted)
    assert change == {"metadata": {"annotations": notes}, "spec": {"affinity": affinity}}
    set_there = {"metadata": {"annotations": {**notes, "theirs": "x"}}, "spec": wanted["spec"]}
    assert volcano_state.queue_patch(set_there, wanted) == {}
    assert volcano_state.queue_patch(set_there, bare) == {
        "metadata": {"annotations": {"volcano.sh/hierarchy": None}},
        "spec": {"affinity": None},
    }


def test_manifest_is_complete_as_after_volcanos_webhooks() -> None:
    manifest = manifest_of(spec(replicas=3, ttl_seconds_after_finished=5), image="busybox", node_labels={"ours": "yes"})
    assert manifest["metadata"]["name"] == "job-01234567"
    assert manifest["spec"]["minAvailable"] == 3
    assert "ttlSecondsAfterFinished" not in manifest["spec"]
    template = manifest["spec"]["tasks"][0]["template"]
    labels = {names.CLUSTER: "c1", names.JOB: UID, names.TENANT: "lab", names.TASK: "main"}
    assert template["metadata"]["labels"] == labels
    assert template["spec"]["containers"][0]["image"] == "busybox"
    assert template["spec"]["nodeSelector"] == {"ours": "yes"}


def test_dollars_in_commands_and_variables_are_preserved() -> None:
    task = manifest_of(spec(command=["echo", "$(HOME) $$"], env={"A": "$(B)"}))["spec"]["tasks"][0]
    container = task["template"]["spec"]["containers"][0]
    assert container["command"] == ["echo", "$$(HOME) $$$$"]
    assert container["env"] == [{"name": "A", "value": "$$(B)"}]


def test_image_runs_its_own_command_with_other_arguments() -> None:
    job = JobSpec.parse({"name": "job", "tasks": [{"name": "main", "image": "server:1", "args": ["--port", "$(P)"]}]})
    container = manifest_of(job)["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    assert (container.get("command"), container["args"]) == (None, ["--port", "$$(P)"])


def test_files_of_two_jobs_of_one_name_have_different_names() -> None:
    made = [
        VolcanoManifests("c1", KubernetesConfig()).job(uid, spec(files={"a.py": "1"}), "lab")[1]
        for uid in (UID, "f" * 32)
    ]
    assert len({files["metadata"]["name"] for _policy, (_kind, files) in made}) == 2


def test_pods_of_a_volcano_job_may_connect_to_each_other() -> None:
    manifest, ((kind, policy), *_others) = VolcanoManifests("c1", KubernetesConfig()).job(UID, spec(), "lab")
    selector = policy["spec"]["podSelector"]["matchLabels"]
    assert kind == "networkpolicies"
    assert policy["spec"]["egress"] == [{"to": [{"podSelector": {"matchLabels": selector}}]}]
    (task,) = manifest["spec"]["tasks"]
    assert selector.items() <= task["template"]["metadata"]["labels"].items()


def test_volumes_are_in_the_templates_and_claims_are_separate_objects() -> None:
    claim = {"name": "out", "volume_claim": {"storage": "5Gi"}}
    mounts = [{"name": "out", "mount_path": "/out"}, {"name": "data", "mount_path": "/data", "read_only": True}]
    task = {"name": "main", "command": ["x"], "volume_mounts": mounts}
    volumes = [claim, {"name": "data", "volume_claim_name": "data-sets"}]
    job_spec = JobSpec.parse({"name": "job", "tasks": [task], "volumes": volumes})
    manifest, companions = VolcanoManifests("c1", KubernetesConfig(claims=("data-sets",))).job(UID, job_spec, "lab")
    pod = manifest["spec"]["tasks"][0]["template"]["spec"]
    assert pod["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-sets"}},
        {"name": "out", "persistentVolumeClaim": {"claimName": "job-01234567-out"}},
    ]
    assert [one["mountPath"] for one in pod["containers"][0]["volumeMounts"]] == ["/out", "/data"]
    (_policy, (kind, made)) = companions
    assert (kind, made["metadata"]["name"]) == ("persistentvolumeclaims", "job-01234567-out")
    assert made["metadata"]["labels"] == {names.CLUSTER: "c1", names.JOB: UID}
    with pytest.raises(StartRefused, match="“data-sets” is not for jobs of this cluster"):
        VolcanoManifests("c1", KubernetesConfig()).job(UID, job_spec, "lab")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"plugins": {"indexed": []}}, "no job plugin “indexed”"),
        ({"environment": "torch"}, "name an image instead"),
    ],
)
def test_unsupported_field_is_refused_with_a_reason(fields, words) -> None:
    with pytest.raises(StartRefused, match=words):
        manifest_of(spec(**fields))


def test_too_long_name_of_a_task_is_refused() -> None:
    long = JobSpec.parse({"name": "a", "tasks": [{"name": "t" * 58, "command": ["x"]}]})
    with pytest.raises(StartRefused, match="Shorten the names of its tasks"):
        manifest_of(long)


class GroupServer:
    """An API server with these versions of every group."""

    def __init__(self, *versions: str) -> None:
        self.versions = versions

    def get(self, path: str) -> dict[str, Any]:
        group = path.removeprefix("/apis/")
        if not self.versions:
            raise ApiError(404, "NotFound", "")
        served = [{"groupVersion": f"{group}/{version}"} for version in self.versions]
        return {"versions": served, "preferredVersion": served[0]}


@pytest.mark.parametrize(
    ("served", "used"),
    [(("v1alpha1",), "v1alpha1"), (("v1", "v1alpha1"), "v1alpha1"), (("v2", "v1"), "v2")],
)
def test_version_is_one_that_the_server_has_ours_if_possible(served, used, tmp_path) -> None:
    backend = VolcanoBackend(KubernetesConfig(scheduler="volcano"), BackendContext("c1", tmp_path, now))
    vars(backend.parts)["api"] = GroupServer(*served)
    assert backend.delegated._version_of("batch.volcano.sh") == f"batch.volcano.sh/{used}"


def test_cluster_without_volcano_is_reported(tmp_path) -> None:
    backend = VolcanoBackend(KubernetesConfig(scheduler="volcano"), BackendContext("c1", tmp_path, now))
    vars(backend.parts)["api"] = GroupServer()
    with pytest.raises(BackendError, match="Volcano is not installed there"):
        backend.delegated._version_of("batch.volcano.sh")


class PartialServer:
    """An API server with only these groups of Volcano and one job; it accepts no new objects."""

    def __init__(self, *groups: str) -> None:
        self.groups = groups

    def get(self, path: str) -> dict[str, Any]:
        group = path.removeprefix("/apis/")
        if group not in self.groups:
            raise ApiError(404, "NotFound", "")
        return GroupServer("v1alpha1").get(path)

    def pages(self, path: str, **_parameters: str) -> list[dict[str, Any]]:
        labels = {names.JOB: UID}
        meta = {"name": "job", "uid": "j", "resourceVersion": "1", "labels": labels}
        return [{"items": [{**job("Running"), "metadata": meta}]}] if path.endswith("/jobs") else [{"items": []}]

    def create(self, path: str, _manifest: dict[str, Any]) -> dict[str, Any]:
        raise ApiError(404, "NotFound", "the server could not find the requested resource")


_LEAST = ("batch.volcano.sh", "scheduling.volcano.sh")


@pytest.mark.parametrize("groups", [_LEAST, (*_LEAST, "bus.volcano.sh")], ids=["no group", "no kind"])
def test_jobs_are_listed_without_commands_and_actions_are_refused(groups, tmp_path) -> None:
    """Kinds for job flows and others are never requested."""
    backend = VolcanoBackend(KubernetesConfig(scheduler="volcano"), BackendContext("c1", tmp_path, now))
    vars(backend.parts)["api"] = PartialServer(*groups)
    assert backend.delegated.list_jobs()[UID].phase is JobPhase.RUNNING
    with pytest.raises(ActionUnsupported, match="does not know the Commands of Volcano"):
        backend.delegated.request(UID, LifecycleAction.ABORT_JOB, restarts=0, heartbeat=lambda: None)


def test_action_is_not_sent_to_a_job_that_has_restarted(tmp_path) -> None:
    backend = VolcanoBackend(KubernetesConfig(scheduler="volcano"), BackendContext("c1", tmp_path, now))
    vars(backend.parts)["api"] = PartialServer(*_LEAST)
    # the server would refuse it
    backend.delegated.request(UID, LifecycleAction.RESTART_JOB, restarts=1, heartbeat=lambda: None)
