"""A cluster that Volcano leads: what people see of their jobs is what the real Volcano does with them."""

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from django.utils.html import escape
from tests.controller import conftest
from tests.controller.conftest import World
from tests.kubernetes.control_plane import LOG_LINES, ControlPlane, RequestRefused
from tests.kubernetes.volcano.processes import Volcano

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.job_history import labels as wording
from hekla.apps.jobs import audit as rows
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.apps.queues import services as queues
from hekla.backends.base import PodKey
from hekla.backends.kubernetes.volcano_manifests import VolcanoManifests
from hekla.controller import audit
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.domain.errors import Refused
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase, PodPhase
from hekla.domain.policies import LifecycleAction
from hekla.domain.scaling import JobScale, TaskScale
from hekla.lib import clock

SIZE = {"cpu": "4", "memory": "8Gi", "pods": "20"}
SAID = "".join(f"{line}\n" for line in LOG_LINES).encode()
_JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs"
_GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups"
_PODS = "/api/v1/namespaces/{}/pods"
_QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"


@pytest.fixture(autouse=True)
def patience_with_volcano(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its controllers and its scheduler take their turns too."""
    monkeypatch.setattr(conftest, "LAST_SECONDS", 90.0)


@pytest.fixture
def plane(volcano: Volcano) -> ControlPlane:
    return volcano.plane


@pytest.fixture
def led(
    plane: ControlPlane, volcano_namespace: str, transactional_db: None, settings: Any, tmp_path: Path
) -> Iterator[World]:
    """A machine with four processors that only this test uses, in a cluster that Volcano leads."""
    settings.HEKLA_HOME = tmp_path
    controllers.reset()
    labels = {"hekla.dev/test": volcano_namespace}
    machines = plane.add_nodes(1, allocatable=SIZE, labels=labels)
    (tmp_path / "kubeconfigs").mkdir()
    (tmp_path / "kubeconfigs" / "test").write_text(json.dumps(plane.kubeconfig(plane.user_token)))
    config = {"kubeconfig": "test", "namespace": volcano_namespace, "node_labels": labels, "scheduler": "volcano"}
    world = World.found("kubernetes", config)
    yield world
    backend_of(world.cluster).close()
    controllers.reset()
    plane.remove_nodes(machines)


def submit(world: World, name: str = "one", **fields: Any) -> Job:
    env = {"HEKLA_SIM_SECONDS": str(fields.pop("seconds", 0.5)), "HEKLA_SIM_EXIT": str(fields.pop("exit_code", 0))}
    task = {
        "name": "main",
        "command": ["x"],
        "replicas": fields.pop("replicas", 1),
        "resources": {"cpu": fields.pop("cpu", "1")},
        "env": env,
        "volume_mounts": fields.pop("mounts", []),
    }
    spec = JobSpec.parse({"name": name, "tasks": [task], **fields})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def phase(job: Job) -> str:
    return Job.objects.get(pk=job.pk).phase


def until(world: World, job: Job, wanted: JobPhase) -> None:
    world.turn_until(lambda: phase(job) == wanted)


def at(plane: ControlPlane, namespace: str) -> list[dict[str, Any]]:
    return plane.request("GET", _JOBS.format(namespace))["items"]


def reason_of(job: Job) -> str:
    waiting = Job.objects.get(pk=job.pk).waiting
    return wording.reason(waiting[0]) if waiting else ""


def runs(plane: ControlPlane, namespace: str, name: str) -> bool:
    states = {one["metadata"]["name"]: one.get("status", {}).get("state", {}) for one in at(plane, namespace)}
    return states[name].get("phase") == "Running"


def groups(volcano: Volcano, namespace: str) -> list[dict[str, Any]]:
    return volcano.plane.request("GET", _GROUPS.format(namespace))["items"]


def end_pods(plane: ControlPlane, namespace: str) -> None:
    """The pods that run there end now, with the exit code that they were given, however long they were to run."""
    change = {"metadata": {"annotations": {"hekla.dev/test-ends-at": clock.now().isoformat()}}}
    for pod in plane.request("GET", _PODS.format(namespace))["items"]:
        if pod.get("status", {}).get("phase") == "Running":
            named = f"{_PODS.format(namespace)}/{pod['metadata']['name']}"
            plane.request("PATCH", named, change, content_type="application/merge-patch+json")


def lose_sight(volcano: Volcano, namespace: str) -> None:
    """What befalls a job that restarts while the scheduler looks at it: its PodGroup is Pending when it is deleted.

    The job restarts since its pods end here: a life of so many seconds may be over before that on a slow machine.

    Its controller mostly takes that one for the next one then, and waits. If it made the next one, that is taken away.
    """
    plane, place = volcano.plane, _GROUPS.format(namespace)
    (old,) = groups(volcano, namespace)
    change = {"status": {"phase": "Pending"}}
    named = f"{place}/{old['metadata']['name']}"
    plane.request("PATCH", named, change, content_type="application/merge-patch+json")
    end_pods(plane, namespace)
    plane.wait_until(lambda: at(plane, namespace)[0]["status"]["state"]["phase"] == "Restarting", 90.0)
    uid = old["metadata"]["uid"]
    plane.wait_until(lambda: uid not in [one["metadata"]["uid"] for one in groups(volcano, namespace)], 60.0)
    time.sleep(2.0)
    with contextlib.suppress(RequestRefused):  # it is mostly gone
        plane.request("DELETE", named)


def log_of(world: World, job: Job, *, attempt: int) -> bytes:
    key = PodKey(job.uid.hex, "main", 0, attempt)
    return backend_of(world.cluster).logs(key, offset=0, limit=1000).data


def resize(world: World, job: Job, size: TaskScale) -> None:
    services.scale(job, JobScale(tasks={"main": size}), user=world.alice, now=clock.now())


def ask(world: World, job: Job, action: LifecycleAction) -> None:
    services.command(job, action, user=world.alice, now=clock.now())


def test_a_job_runs_as_one_job_of_volcano_and_its_pods_are_told_like_any(led, plane, volcano_namespace) -> None:
    job = submit(led, replicas=3)
    until(led, job, JobPhase.COMPLETED)
    (there,) = at(plane, volcano_namespace)
    assert there["spec"]["queue"] == "default"
    assert there["spec"]["minAvailable"] == 3
    pods = list(job.pods.order_by("index"))
    assert [(pod.phase, pod.attempt, pod.exit_code) for pod in pods] == [(PodPhase.SUCCEEDED, 1, 0)] * 3
    assert all(pod.node and pod.bound_at and pod.started_at for pod in pods)
    assert audit.findings() == []


def test_the_end_of_a_job_counts_its_pods_though_their_watch_is_behind(
    led, plane, volcano_namespace, monkeypatch
) -> None:
    job = submit(led, replicas=2, seconds=300)
    led.turn_until(lambda: list(job.pods.values_list("phase", flat=True)) == [PodPhase.RUNNING] * 2)
    scheduling = backend_of(led.cluster).delegated
    assert scheduling is not None
    now, before = scheduling.list_pods, scheduling.list_pods()
    monkeypatch.setattr(scheduling, "list_pods", lambda *, fresh=False: now(fresh=True) if fresh else before)
    end_pods(plane, volcano_namespace)
    until(led, job, JobPhase.COMPLETED)
    assert [pod.phase for pod in job.pods.all()] == [PodPhase.SUCCEEDED] * 2
    assert "2 of 2" in Job.objects.get(pk=job.pk).message


def test_the_log_of_a_pod_can_be_read_while_it_runs_and_after_its_job_is_deleted(led, plane, volcano_namespace) -> None:
    job = submit(led, seconds=3)
    until(led, job, JobPhase.RUNNING)
    assert log_of(led, job, attempt=1) == SAID
    until(led, job, JobPhase.COMPLETED)
    services.delete(Job.objects.get(pk=job.pk), user=led.alice, now=clock.now())
    led.turn_until(lambda: Job.objects.get(pk=job.pk).cleaned_at is not None)
    assert at(plane, volcano_namespace) == []
    assert log_of(led, job, attempt=1) == SAID
    assert audit.findings() == []


def test_an_aborted_job_ends_and_goes_on_when_it_is_resumed(led) -> None:
    job = submit(led, seconds=1000)
    until(led, job, JobPhase.RUNNING)
    ask(led, job, LifecycleAction.ABORT_JOB)
    assert phase(job) == JobPhase.ABORTING
    until(led, job, JobPhase.ABORTED)
    led.turn_until(lambda: all(pod.is_final for pod in job.pods.all()))
    assert [(pod.phase, pod.reason, pod.stopping) for pod in job.pods.all()] == [(PodPhase.FAILED, "Stopped", True)]
    assert log_of(led, job, attempt=1) == SAID
    ask(led, job, LifecycleAction.RESUME_JOB)
    until(led, job, JobPhase.RUNNING)
    assert [pod.attempt for pod in job.pods.order_by("attempt")] == [1, 2]
    ask(led, job, LifecycleAction.TERMINATE_JOB)
    until(led, job, JobPhase.TERMINATED)
    led.turn_until(lambda: all(pod.is_final for pod in job.pods.all()))
    assert audit.findings() == []


def test_a_policy_is_volcanos_to_carry_out_and_is_carried_out_once(led) -> None:
    policies = [{"events": ["PodFailed"], "action": "AbortJob"}]
    job = submit(led, seconds=3, exit_code=7, max_retry=2, policies=policies)
    until(led, job, JobPhase.ABORTED)
    led.turn_until(lambda: all(pod.is_final for pod in job.pods.all()))
    controllers.reconcile(led.cluster)
    assert phase(job) == JobPhase.ABORTED
    assert [pod.exit_code for pod in job.pods.all()] == [7]
    assert not LoggedEvent.objects.filter(kind="JobPhaseChanged", payload__new="restarting").exists()
    assert rows.findings() == []


def test_a_job_that_a_person_restarts_begins_again_once(led) -> None:
    job = submit(led, seconds=1000, replicas=2)
    until(led, job, JobPhase.RUNNING)
    led.turn_until(lambda: job.pods.filter(phase=PodPhase.RUNNING).count() == 2)
    ask(led, job, LifecycleAction.RESTART_JOB)
    assert phase(job) == JobPhase.RESTARTING
    led.turn_until(lambda: job.pods.filter(attempt=2, phase=PodPhase.RUNNING).count() == 2)
    until(led, job, JobPhase.RUNNING)
    led.turn_until(lambda: all(pod.is_final for pod in job.pods.filter(attempt=1)))
    controllers.reconcile(led.cluster)
    assert Job.objects.get(pk=job.pk).retry_count == 1
    assert job.pods.count() == 4
    ask(led, job, LifecycleAction.RESTART_JOB)
    led.turn_until(lambda: job.pods.filter(attempt=3, phase=PodPhase.RUNNING).count() == 2)
    until(led, job, JobPhase.RUNNING)
    with pytest.raises(Refused, match="At number 3"):
        ask(led, Job.objects.get(pk=job.pk), LifecycleAction.RESTART_JOB)
    assert audit.findings() == []


def test_a_wish_is_withdrawn_where_the_cluster_knows_no_commands(led, monkeypatch) -> None:
    job = submit(led, seconds=1000)
    until(led, job, JobPhase.RUNNING)
    backend = backend_of(led.cluster)
    monkeypatch.setitem(backend.delegated._versions, "bus.volcano.sh", "bus.volcano.sh/v0")
    ask(led, job, LifecycleAction.ABORT_JOB)
    until(led, job, JobPhase.RUNNING)
    row = Job.objects.get(pk=job.pk)
    assert row.reason == "NotAsked"
    assert "does not know the Commands" in row.message
    ask(led, job, LifecycleAction.ABORT_JOB)
    until(led, job, JobPhase.ABORTED)
    assert rows.findings() == []


def test_a_restart_that_volcano_has_lost_sight_of_goes_on(led, volcano, volcano_namespace) -> None:
    policies = [{"events": ["PodFailed"], "action": "RestartJob"}]
    job = submit(led, seconds=1000, exit_code=7, max_retry=2, policies=policies)
    until(led, job, JobPhase.RUNNING)
    volcano.stop_scheduler()
    try:
        lose_sight(volcano, volcano_namespace)
    finally:
        volcano.start_scheduler()
    led.turn_until(lambda: job.pods.filter(attempt=2, phase=PodPhase.RUNNING).exists())
    end_pods(volcano.plane, volcano_namespace)
    until(led, job, JobPhase.FAILED)
    led.turn_until(lambda: all(pod.is_final for pod in job.pods.all()))
    assert [pod.exit_code for pod in job.pods.order_by("attempt")] == [7, 7]
    assert Job.objects.get(pk=job.pk).retry_count == 2
    assert rows.findings() == []


def test_a_job_that_finds_no_room_says_why_in_volcanos_words_and_can_be_aborted(led, client) -> None:
    first = submit(led, "first", seconds=1000, cpu="3")
    until(led, first, JobPhase.RUNNING)
    job = submit(led, "second", cpu="3")
    led.turn_until(lambda: "Insufficient cpu" in reason_of(job))
    client.force_login(led.alice, backend="django.contrib.auth.backends.ModelBackend")
    page = client.get(reverse("jobs:detail", args=[job.uid])).content.decode()
    assert escape(reason_of(job)) in page
    ask(led, job, LifecycleAction.ABORT_JOB)
    until(led, job, JobPhase.ABORTED)
    assert Job.objects.get(pk=job.pk).waiting == []
    assert phase(first) == JobPhase.RUNNING
    assert rows.findings() == []


def test_the_queue_is_made_and_kept_as_it_is_here(led, plane) -> None:
    name = f"q-{led.cluster.config['namespace']}"
    values = {"weight": 3, "capability": {"cpu": "2"}}
    queue = queues.create(cluster=led.cluster, name=name, values=values, actor=PLATFORM, now=clock.now())
    controllers.reconcile(led.cluster)
    there = plane.request("GET", f"{_QUEUES}/{name}")
    assert (there["spec"]["weight"], there["spec"]["capability"]) == (3, {"cpu": "2"})
    values = {"weight": 5, "capability": {"memory": "4Gi"}}
    queues.change(queue, values, by=led.alice, actor=PLATFORM, now=clock.now())
    controllers.reconcile(led.cluster)
    there = plane.request("GET", f"{_QUEUES}/{name}")
    assert (there["spec"]["weight"], there["spec"]["capability"]) == (5, {"memory": "4Gi"})
    plane.request("DELETE", f"{_QUEUES}/{name}")


def test_jobs_and_queues_of_others_are_left_as_they_are(led, plane, volcano_namespace) -> None:
    container = {"name": "c", "image": "i", "command": ["x"]}
    pod = {
        "spec": {
            "restartPolicy": "Never",
            "containers": [container],
            "nodeSelector": {"hekla.dev/test": volcano_namespace},
        }
    }
    task = {"name": "t", "replicas": 1, "template": pod}
    theirs = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "theirs"},
        "spec": {"schedulerName": "volcano", "queue": "default", "minAvailable": 1, "tasks": [task]},
    }
    plane.request("POST", _JOBS.format(volcano_namespace), theirs)
    queue = plane.request("GET", f"{_QUEUES}/default")["spec"]
    job = submit(led)
    until(led, job, JobPhase.COMPLETED)
    plane.wait_until(lambda: runs(plane, volcano_namespace, "theirs"), 60.0)
    services.delete(Job.objects.get(pk=job.pk), user=led.alice, now=clock.now())
    led.turn_until(lambda: Job.objects.get(pk=job.pk).cleaned_at is not None)
    assert [one["metadata"]["name"] for one in at(plane, volcano_namespace)] == ["theirs"]
    assert plane.request("GET", f"{_QUEUES}/default")["spec"] == queue
    assert Job.objects.count() == 1


def test_a_job_that_somebody_deletes_in_the_cluster_has_failed_here_and_says_so(led, plane, volcano_namespace) -> None:
    job = submit(led, seconds=1000)
    until(led, job, JobPhase.RUNNING)
    (there,) = at(plane, volcano_namespace)
    plane.request("DELETE", f"{_JOBS.format(volcano_namespace)}/{there['metadata']['name']}")
    until(led, job, JobPhase.FAILED)
    assert Job.objects.get(pk=job.pk).reason == "Deleted"
    assert rows.findings() == []


def test_what_this_volcano_does_not_know_fails_the_job_with_its_sentence(led, monkeypatch) -> None:
    write = VolcanoManifests.job

    def newer(manifests: VolcanoManifests, uid: str, spec: JobSpec) -> tuple[Any, Any]:
        job, files = write(manifests, uid, spec)
        job["spec"]["ofALaterVersion"] = True
        return job, files

    monkeypatch.setattr(VolcanoManifests, "job", newer)
    job = submit(led)
    until(led, job, JobPhase.FAILED)
    row = Job.objects.get(pk=job.pk)
    assert row.reason == "StartRefused"
    assert "ofALaterVersion" in row.message
    assert rows.findings() == []


def test_what_volcano_cannot_be_asked_for_is_refused(led) -> None:
    job = submit(led, seconds=1000)
    until(led, job, JobPhase.RUNNING)
    with pytest.raises(Refused, match="only the whole job"):
        services.command(job, LifecycleAction.RESTART_TASK, task="main", user=led.alice, now=clock.now())
    with pytest.raises(Refused, match="PriorityClass"):
        services.set_priority(job, 5, user=led.alice, now=clock.now())


def test_the_page_says_what_cannot_be_asked_of_volcano_and_shows_no_way_to_it(led, client) -> None:
    job = submit(led, seconds=1000, max_retry=1)
    until(led, job, JobPhase.RUNNING)
    client.force_login(led.alice, backend="django.contrib.auth.backends.ModelBackend")
    page = client.get(reverse("jobs:detail", args=[job.uid])).content.decode()
    assert "uses its PriorityClass" in page
    assert reverse("jobs:priority", args=[job.uid]) not in page
    assert escape("At number 1 (max_retry) the job fails") in page
    assert 'value="RestartJob"' not in page
    assert 'value="AbortJob"' in page
    assert reverse("jobs:scale", args=[job.uid]) in page


def test_a_job_gets_another_size_there_and_keeps_it(led, plane, volcano_namespace) -> None:
    job = submit(led, seconds=1000, replicas=2)
    until(led, job, JobPhase.RUNNING)
    resize(led, job, TaskScale(replicas=3, min_available=1))
    led.turn_until(lambda: job.pods.filter(phase=PodPhase.RUNNING).count() == 3)
    (there,) = at(plane, volcano_namespace)
    task = there["spec"]["tasks"][0]
    assert (task["replicas"], task["minAvailable"], there["spec"]["minAvailable"]) == (3, 1, 1)
    controllers.reset()
    controllers.reconcile(led.cluster)
    assert at(plane, volcano_namespace)[0]["metadata"]["generation"] == there["metadata"]["generation"]
    resize(led, job, TaskScale(replicas=1))
    led.turn_until(lambda: sorted(pod.phase for pod in job.pods.all()) == ["failed", "failed", "running"])
    assert {pod.index for pod in job.pods.filter(phase=PodPhase.RUNNING)} == {0}
    kept = [backend_of(led.cluster).logs(PodKey(job.uid.hex, "main", at, 1), offset=0, limit=1000) for at in range(3)]
    assert [chunk.data for chunk in kept] == [SAID, SAID, SAID]
    assert [chunk.complete for chunk in kept] == [False, True, True], "who stays goes on to write"
    assert Job.objects.get(pk=job.pk).retry_count == 0
    assert audit.findings() == []


def test_how_many_partitions_a_task_has_is_not_changed_there(led) -> None:
    task = {"name": "main", "command": ["x"], "replicas": 2, "partition_size": 1, "resources": {"cpu": "1"}}
    spec = JobSpec.parse({"name": "one", "tasks": [task]})
    job = services.submit(spec=spec, tenant=led.tenant, user=led.alice, now=clock.now())
    with pytest.raises(Refused, match="cannot change the partitions"):
        resize(led, job, TaskScale(replicas=3))


def test_a_controller_that_begins_anew_counts_no_pod_twice(led) -> None:
    job = submit(led, seconds=1000, replicas=2)
    until(led, job, JobPhase.RUNNING)
    led.turn_until(lambda: job.pods.filter(phase=PodPhase.RUNNING).count() == 2)
    controllers.reset()
    controllers.reconcile(led.cluster)
    controllers.reconcile(led.cluster)
    assert job.pods.count() == 2
    assert {pod.phase for pod in job.pods.all()} == {PodPhase.RUNNING}


def test_a_cluster_that_is_given_another_configuration_loses_no_pod(led) -> None:
    job = submit(led, seconds=1000)
    until(led, job, JobPhase.RUNNING)
    led.turn_until(lambda: job.pods.filter(phase=PodPhase.RUNNING).exists())
    led.cluster.config = {**led.cluster.config, "image": "another"}
    led.cluster.save()
    controllers.reconcile(led.cluster)
    assert [pod.phase for pod in job.pods.all()] == [PodPhase.RUNNING]


def test_a_pod_that_somebody_deletes_comes_back_as_another_attempt(led, plane, volcano_namespace) -> None:
    job = submit(led, seconds=1000)
    until(led, job, JobPhase.RUNNING)
    led.turn_until(lambda: job.pods.filter(phase=PodPhase.RUNNING).exists())
    (there,) = at(plane, volcano_namespace)
    plane.request("DELETE", f"/api/v1/namespaces/{volcano_namespace}/pods/{there['metadata']['name']}-main-0")
    led.turn_until(lambda: job.pods.filter(attempt=2, phase=PodPhase.RUNNING).exists())
    first = job.pods.get(attempt=1)
    assert (first.phase, first.stopping) == (PodPhase.FAILED, True)
    assert rows.findings() == []


def test_the_time_of_a_job_that_volcano_leads_is_over_when_it_is(led) -> None:
    job = submit(led, seconds=1000, active_deadline_seconds=2)
    until(led, job, JobPhase.FAILED)
    assert Job.objects.get(pk=job.pk).reason == "DeadlineExceeded"
    led.turn_until(lambda: all(pod.is_final for pod in job.pods.all()))
    assert phase(job) == JobPhase.FAILED
    assert rows.findings() == []


def test_a_job_whose_queue_has_no_share_left_says_so_in_volcanos_words(led, plane) -> None:
    name = f"q-{led.cluster.config['namespace']}"
    values = {"capability": {"cpu": "1"}}
    queues.create(cluster=led.cluster, name=name, values=values, actor=PLATFORM, now=clock.now())
    first = submit(led, "first", seconds=1000, queue=name)
    until(led, first, JobPhase.RUNNING)
    job = submit(led, "second", seconds=1000, queue=name)
    led.turn_until(lambda: "insufficient cpu" in reason_of(job))
    assert reason_of(job).startswith("Volcano says: queue resource quota")
    assert job.pods.count() == 0
    for one in (first, job):
        ask(led, one, LifecycleAction.TERMINATE_JOB)
        until(led, one, JobPhase.TERMINATED)
    plane.request("DELETE", f"{_QUEUES}/{name}")


def test_files_of_a_job_are_there_before_its_pods_and_go_with_it(led, plane, volcano_namespace) -> None:
    job = submit(led, files={"train.py": "print(1)"})
    until(led, job, JobPhase.COMPLETED)
    maps = f"/api/v1/namespaces/{volcano_namespace}/configmaps?labelSelector=hekla.dev/job={job.uid.hex}"
    assert [one["data"] for one in plane.request("GET", maps)["items"]] == [{"train.py": "print(1)"}]
    services.delete(Job.objects.get(pk=job.pk), user=led.alice, now=clock.now())
    led.turn_until(lambda: Job.objects.get(pk=job.pk).cleaned_at is not None)
    assert plane.request("GET", maps)["items"] == []
    assert audit.findings() == []


def test_a_job_with_memory_for_its_pods_runs_there(led, plane, volcano_namespace) -> None:
    shm = [{"name": "shm", "empty_dir": {"medium": "Memory", "size_limit": "1Gi"}}]
    job = submit(led, volumes=shm, mounts=[{"name": "shm", "mount_path": "/dev/shm"}])
    until(led, job, JobPhase.COMPLETED)


def test_a_claim_of_a_job_is_made_before_it_and_goes_with_it(led, plane, volcano_namespace) -> None:
    """Nobody provisions claims here, so its pod waits."""
    claim = [{"name": "out", "volume_claim": {"storage": "1Gi"}}]
    job = submit(led, volumes=claim, mounts=[{"name": "out", "mount_path": "/out"}])
    labelled = f"labelSelector=hekla.dev/job={job.uid.hex}"
    place = f"/api/v1/namespaces/{volcano_namespace}/persistentvolumeclaims?{labelled}"
    led.turn_until(lambda: len(at(plane, volcano_namespace)) > 0)
    assert len(plane.request("GET", place)["items"]) == 1
    ask(led, job, LifecycleAction.TERMINATE_JOB)
    until(led, job, JobPhase.TERMINATED)
    services.delete(Job.objects.get(pk=job.pk), user=led.alice, now=clock.now())
    led.turn_until(lambda: plane.request("GET", place)["items"] == [])


def test_job_plugins_are_volcanos_own(led, plane, volcano_namespace) -> None:
    job = submit(led, seconds=1000, replicas=2, plugins={"env": [], "svc": []})
    led.turn_until(lambda: job.pods.filter(phase=PodPhase.RUNNING).count() == 2)
    pods = plane.request("GET", f"/api/v1/namespaces/{volcano_namespace}/pods")["items"]
    told = [{one["name"]: one for one in pod["spec"]["containers"][0]["env"]} for pod in pods]
    assert sorted(env["VC_TASK_INDEX"]["value"] for env in told) == ["0", "1"]
    assert all("VC_MAIN_HOSTS" in env for env in told)
    ask(led, job, LifecycleAction.TERMINATE_JOB)
    until(led, job, JobPhase.TERMINATED)
