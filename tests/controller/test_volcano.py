"""A cluster scheduled by Volcano: users see in Hekla what the real Volcano does with their jobs."""

from typing import Any

import pytest
from django.urls import reverse
from django.utils.html import escape
from tests.controller.delegated import (
    JOBS,
    LOG,
    PODS,
    QUEUES,
    delegated,
    disturb_restart,
    end_pods,
    is_running,
    list_jobs,
    log_of,
    long_patience,
    phase,
    plane,
    reason_of,
    reconcile_until_phase,
    resize,
    send,
    submit,
)

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
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
from hekla.domain.scaling import TaskScale
from hekla.lib import clock

__all__ = ["delegated", "long_patience", "plane"]


def test_job_runs_as_one_volcano_job_with_the_usual_pods(delegated, plane, volcano_namespace) -> None:
    job = submit(delegated, replicas=3)
    reconcile_until_phase(delegated, job, JobPhase.COMPLETED)
    (volcano_job,) = list_jobs(plane, volcano_namespace)
    assert volcano_job["spec"]["queue"] == "default"
    assert volcano_job["spec"]["minAvailable"] == 3
    pods = list(job.pods.order_by("index"))
    assert [(pod.phase, pod.attempt, pod.exit_code) for pod in pods] == [(PodPhase.SUCCEEDED, 1, 0)] * 3
    assert all(pod.node and pod.bound_at and pod.started_at for pod in pods)
    assert audit.findings() == []


def test_a_job_that_ends_between_two_looks_has_its_pods(delegated, plane, volcano_namespace) -> None:
    job = submit(delegated, replicas=2)
    controllers.reconcile(delegated.cluster)
    delegated.backend_until(lambda: list_jobs(plane, volcano_namespace)[0]["status"]["state"]["phase"] == "Completed")
    reconcile_until_phase(delegated, job, JobPhase.COMPLETED)
    assert [pod.phase for pod in job.pods.all()] == [PodPhase.SUCCEEDED] * 2


def test_pods_are_isolated_before_they_start(delegated, plane, volcano_namespace) -> None:
    """The network policies of their tenant and of their job exist, and select its pods from their creation."""
    submit(delegated, seconds=600)
    controllers.reconcile(delegated.cluster)
    policies = plane.request("GET", f"/apis/networking.k8s.io/v1/namespaces/{volcano_namespace}/networkpolicies")
    (template,) = [task["template"] for task in list_jobs(plane, volcano_namespace)[0]["spec"]["tasks"]]
    kinds = []
    for policy in policies["items"]:
        assert policy["spec"]["podSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
        kinds += policy["spec"]["policyTypes"]
    assert sorted(kinds) == ["Egress", "Egress", "Ingress"]


def test_completed_job_counts_pods_that_the_watch_missed(delegated, plane, volcano_namespace, monkeypatch) -> None:
    job = submit(delegated, replicas=2, seconds=300)
    delegated.reconcile_until(lambda: list(job.pods.values_list("phase", flat=True)) == [PodPhase.RUNNING] * 2)
    scheduling = backend_of(delegated.cluster).delegated
    assert scheduling is not None
    now, before = scheduling.list_pods, scheduling.list_pods()
    monkeypatch.setattr(scheduling, "list_pods", lambda *, fresh=False: now(fresh=True) if fresh else before)
    end_pods(plane, volcano_namespace)
    reconcile_until_phase(delegated, job, JobPhase.COMPLETED)
    assert [pod.phase for pod in job.pods.all()] == [PodPhase.SUCCEEDED] * 2
    assert "2 of 2" in Job.objects.get(pk=job.pk).message


def test_log_is_readable_while_the_pod_runs_and_after_deletion(delegated, plane, volcano_namespace) -> None:
    job = submit(delegated, seconds=3)
    reconcile_until_phase(delegated, job, JobPhase.RUNNING)
    assert log_of(delegated, job, attempt=1) == LOG
    reconcile_until_phase(delegated, job, JobPhase.COMPLETED)
    services.delete(Job.objects.get(pk=job.pk), user=delegated.alice, now=clock.now())
    delegated.reconcile_until(lambda: Job.objects.get(pk=job.pk).cleaned_at is not None)
    assert list_jobs(plane, volcano_namespace) == []
    assert log_of(delegated, job, attempt=1) == LOG
    assert audit.findings() == []


def test_aborted_job_ends_and_can_be_resumed(delegated) -> None:
    job = submit(delegated, seconds=1000)
    reconcile_until_phase(delegated, job, JobPhase.RUNNING)
    send(delegated, job, LifecycleAction.ABORT_JOB)
    assert phase(job) == JobPhase.ABORTING
    reconcile_until_phase(delegated, job, JobPhase.ABORTED)
    delegated.reconcile_until(lambda: all(pod.is_final for pod in job.pods.all()))
    assert [(pod.phase, pod.reason, pod.stopping) for pod in job.pods.all()] == [(PodPhase.FAILED, "Stopped", True)]
    assert log_of(delegated, job, attempt=1) == LOG
    send(delegated, job, LifecycleAction.RESUME_JOB)
    reconcile_until_phase(delegated, job, JobPhase.RUNNING)
    assert [pod.attempt for pod in job.pods.order_by("attempt")] == [1, 2]
    send(delegated, job, LifecycleAction.TERMINATE_JOB)
    reconcile_until_phase(delegated, job, JobPhase.TERMINATED)
    delegated.reconcile_until(lambda: all(pod.is_final for pod in job.pods.all()))
    assert audit.findings() == []


def test_policy_is_applied_once_by_volcano(delegated) -> None:
    policies = [{"events": ["PodFailed"], "action": "AbortJob"}]
    job = submit(delegated, seconds=3, exit_code=7, max_retry=2, policies=policies)
    reconcile_until_phase(delegated, job, JobPhase.ABORTED)
    delegated.reconcile_until(lambda: all(pod.is_final for pod in job.pods.all()))
    controllers.reconcile(delegated.cluster)
    assert phase(job) == JobPhase.ABORTED
    assert [pod.exit_code for pod in job.pods.all()] == [7]
    assert not LoggedEvent.objects.filter(kind="JobPhaseChanged", payload__new="restarting").exists()
    assert rows.findings() == []


def test_restart_by_a_person_is_applied_once(delegated) -> None:
    job = submit(delegated, seconds=1000, replicas=2)
    reconcile_until_phase(delegated, job, JobPhase.RUNNING)
    delegated.reconcile_until(lambda: job.pods.filter(phase=PodPhase.RUNNING).count() == 2)
    send(delegated, job, LifecycleAction.RESTART_JOB)
    assert phase(job) == JobPhase.RESTARTING
    delegated.reconcile_until(lambda: job.pods.filter(attempt=2, phase=PodPhase.RUNNING).count() == 2)
    reconcile_until_phase(delegated, job, JobPhase.RUNNING)
    delegated.reconcile_until(lambda: all(pod.is_final for pod in job.pods.filter(attempt=1)))
    controllers.reconcile(delegated.cluster)
    assert Job.objects.get(pk=job.pk).retry_count == 1
    assert job.pods.count() == 4
    send(delegated, job, LifecycleAction.RESTART_JOB)
    delegated.reconcile_until(lambda: job.pods.filter(attempt=3, phase=PodPhase.RUNNING).count() == 2)
    reconcile_until_phase(delegated, job, JobPhase.RUNNING)
    with pytest.raises(Refused, match="At number 3"):
        send(delegated, Job.objects.get(pk=job.pk), LifecycleAction.RESTART_JOB)
    assert audit.findings() == []


def test_request_is_withdrawn_if_the_cluster_has_no_commands(delegated, monkeypatch) -> None:
    job = submit(delegated, seconds=1000)
    reconcile_until_phase(delegated, job, JobPhase.RUNNING)
    backend = backend_of(delegated.cluster)
    monkeypatch.setitem(backend.delegated._versions, "bus.volcano.sh", "bus.volcano.sh/v0")
    send(delegated, job, LifecycleAction.ABORT_JOB)
    reconcile_until_phase(delegated, job, JobPhase.RUNNING)
    row = Job.objects.get(pk=job.pk)
    assert row.reason == "NotAsked"
    assert "does not know the Commands" in row.message
    send(delegated, job, LifecycleAction.ABORT_JOB)
    reconcile_until_phase(delegated, job, JobPhase.ABORTED)
    assert rows.findings() == []


def test_restart_with_a_lost_pod_group_continues(delegated, volcano, volcano_namespace) -> None:
    policies = [{"events": ["PodFailed"], "action": "RestartJob"}]
    job = submit(delegated, seconds=1000, exit_code=7, max_retry=2, policies=policies)
    reconcile_until_phase(delegated, job, JobPhase.RUNNING)
    volcano.stop_scheduler()
    try:
        disturb_restart(volcano, volcano_namespace)
    finally:
        volcano.start_scheduler()
    delegated.reconcile_until(lambda: job.pods.filter(attempt=2, phase=PodPhase.RUNNING).exists())
    end_pods(volcano.plane, volcano_namespace)
    reconcile_until_phase(delegated, job, JobPhase.FAILED)
    delegated.reconcile_until(lambda: all(pod.is_final for pod in job.pods.all()))
    assert [pod.exit_code for pod in job.pods.order_by("attempt")] == [7, 7]
    assert Job.objects.get(pk=job.pk).retry_count == 2
    assert rows.findings() == []


def test_pending_reason_is_volcanos_and_the_job_can_be_aborted(delegated, client) -> None:
    first = submit(delegated, "first", seconds=1000, cpu="3")
    reconcile_until_phase(delegated, first, JobPhase.RUNNING)
    job = submit(delegated, "second", cpu="3")
    delegated.reconcile_until(lambda: "insufficient cpu" in reason_of(job).lower())  # of the nodes or of the queue
    client.force_login(delegated.alice, backend="django.contrib.auth.backends.ModelBackend")
    page = client.get(reverse("jobs:detail", args=[job.uid])).content.decode()
    assert escape(reason_of(job)) in page
    send(delegated, job, LifecycleAction.ABORT_JOB)
    reconcile_until_phase(delegated, job, JobPhase.ABORTED)
    assert Job.objects.get(pk=job.pk).waiting == []
    assert phase(first) == JobPhase.RUNNING
    assert rows.findings() == []


def test_queue_is_created_and_updated_in_volcano(delegated, plane) -> None:
    name = f"q-{delegated.cluster.config['namespace']}"
    values = {"weight": 3, "capability": {"cpu": "2"}}
    queue = queues.create(cluster=delegated.cluster, name=name, values=values, actor=PLATFORM, now=clock.now())
    controllers.reconcile(delegated.cluster)
    spec_object = plane.request("GET", f"{QUEUES}/{name}")
    assert (spec_object["spec"]["weight"], spec_object["spec"]["capability"]) == (3, {"cpu": "2"})
    values = {"weight": 5, "capability": {"memory": "4Gi"}}
    queues.change(queue, values, by=delegated.alice, actor=PLATFORM, now=clock.now())
    controllers.reconcile(delegated.cluster)
    spec_object = plane.request("GET", f"{QUEUES}/{name}")
    assert (spec_object["spec"]["weight"], spec_object["spec"]["capability"]) == (5, {"memory": "4Gi"})
    plane.request("DELETE", f"{QUEUES}/{name}")


def test_foreign_jobs_and_queues_are_unchanged(delegated, plane, volcano_namespace) -> None:
    container = {"name": "c", "image": "i", "command": ["x"]}
    pod = {
        "spec": {
            "restartPolicy": "Never",
            "containers": [container],
            "nodeSelector": {"hekla.dev/test": volcano_namespace},
        }
    }
    task = {"name": "t", "replicas": 1, "template": pod}
    foreign_job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "theirs"},
        "spec": {"schedulerName": "volcano", "queue": "default", "minAvailable": 1, "tasks": [task]},
    }
    plane.request("POST", JOBS.format(volcano_namespace), foreign_job)
    queue = plane.request("GET", f"{QUEUES}/default")["spec"]
    job = submit(delegated)
    reconcile_until_phase(delegated, job, JobPhase.COMPLETED)
    plane.wait_until(lambda: is_running(plane, volcano_namespace, "theirs"), 60.0)
    services.delete(Job.objects.get(pk=job.pk), user=delegated.alice, now=clock.now())
    delegated.reconcile_until(lambda: Job.objects.get(pk=job.pk).cleaned_at is not None)
    assert [one["metadata"]["name"] for one in list_jobs(plane, volcano_namespace)] == ["theirs"]
    assert plane.request("GET", f"{QUEUES}/default")["spec"] == queue
    assert Job.objects.count() == 1


def test_job_deleted_in_the_cluster_fails_with_a_reason(delegated, plane, volcano_namespace) -> None:
    job = submit(delegated, seconds=1000)
    reconcile_until_phase(delegated, job, JobPhase.RUNNING)
    (volcano_job,) = list_jobs(plane, volcano_namespace)
    plane.request("DELETE", f"{JOBS.format(volcano_namespace)}/{volcano_job['metadata']['name']}")
    reconcile_until_phase(delegated, job, JobPhase.FAILED)
    assert Job.objects.get(pk=job.pk).reason == "Deleted"
    assert rows.findings() == []


def test_job_refused_by_volcano_fails_with_the_message(delegated, monkeypatch) -> None:
    write = VolcanoManifests.job

    def newer(manifests: VolcanoManifests, uid: str, spec: JobSpec, tenant: str) -> tuple[Any, Any]:
        job, files = write(manifests, uid, spec, tenant)
        job["spec"]["ofALaterVersion"] = True
        return job, files

    monkeypatch.setattr(VolcanoManifests, "job", newer)
    job = submit(delegated)
    reconcile_until_phase(delegated, job, JobPhase.FAILED)
    row = Job.objects.get(pk=job.pk)
    assert row.reason == "StartRefused"
    assert "ofALaterVersion" in row.message
    assert rows.findings() == []


def test_commands_that_volcano_lacks_are_refused_and_not_offered(delegated, client) -> None:
    job = submit(delegated, seconds=1000, max_retry=1)
    reconcile_until_phase(delegated, job, JobPhase.RUNNING)
    client.force_login(delegated.alice, backend="django.contrib.auth.backends.ModelBackend")
    page = client.get(reverse("jobs:detail", args=[job.uid]), {"tab": "settings"}).content.decode()
    assert "uses its PriorityClass" in page
    assert reverse("jobs:priority", args=[job.uid]) not in page
    assert escape("At number 1 (max_retry) the job fails") in page
    assert 'value="RestartJob"' not in page
    assert 'value="AbortJob"' in page
    assert reverse("jobs:scale", args=[job.uid]) in page
    with pytest.raises(Refused, match="only the whole job"):
        services.command(job, LifecycleAction.RESTART_TASK, task="main", user=delegated.alice, now=clock.now())
    with pytest.raises(Refused, match="PriorityClass"):
        services.set_priority(job, 5, user=delegated.alice, now=clock.now())


def test_job_is_scaled_in_volcano_and_keeps_its_size(delegated, plane, volcano_namespace) -> None:
    job = submit(delegated, seconds=1000, replicas=2)
    reconcile_until_phase(delegated, job, JobPhase.RUNNING)
    resize(delegated, job, TaskScale(replicas=3, min_available=1))
    delegated.reconcile_until(lambda: job.pods.filter(phase=PodPhase.RUNNING).count() == 3)
    (volcano_job,) = list_jobs(plane, volcano_namespace)
    task = volcano_job["spec"]["tasks"][0]
    assert (task["replicas"], task["minAvailable"], volcano_job["spec"]["minAvailable"]) == (3, 1, 1)
    controllers.reset()
    controllers.reconcile(delegated.cluster)
    assert list_jobs(plane, volcano_namespace)[0]["metadata"]["generation"] == volcano_job["metadata"]["generation"]
    resize(delegated, job, TaskScale(replicas=1))
    delegated.reconcile_until(lambda: sorted(pod.phase for pod in job.pods.all()) == ["failed", "failed", "running"])
    assert {pod.index for pod in job.pods.filter(phase=PodPhase.RUNNING)} == {0}
    logs = [
        backend_of(delegated.cluster).logs(PodKey(job.uid.hex, "main", list_jobs, 1), offset=0, limit=1000)
        for list_jobs in range(3)
    ]
    assert [chunk.data for chunk in logs] == [LOG, LOG, LOG]
    assert [chunk.complete for chunk in logs] == [False, True, True], "the log of a running pod is not complete"
    assert Job.objects.get(pk=job.pk).retry_count == 0
    assert audit.findings() == []


def test_number_of_partitions_cannot_change(delegated) -> None:
    task = {"name": "main", "command": ["x"], "replicas": 2, "partition_size": 1, "resources": {"cpu": "1"}}
    spec = JobSpec.parse({"name": "one", "tasks": [task]})
    job = services.submit(spec=spec, tenant=delegated.tenant, user=delegated.alice, now=clock.now())
    with pytest.raises(Refused, match="cannot change the partitions"):
        resize(delegated, job, TaskScale(replicas=3))


def test_each_pod_counts_once_after_a_restart_and_after_a_changed_configuration(delegated) -> None:
    job = submit(delegated, seconds=1000, replicas=2)
    reconcile_until_phase(delegated, job, JobPhase.RUNNING)
    delegated.reconcile_until(lambda: job.pods.filter(phase=PodPhase.RUNNING).count() == 2)
    controllers.reset()
    controllers.reconcile(delegated.cluster)
    controllers.reconcile(delegated.cluster)
    assert [pod.phase for pod in job.pods.all()] == [PodPhase.RUNNING] * 2
    delegated.cluster.config = {**delegated.cluster.config, "image": "another"}
    delegated.cluster.save()
    controllers.reconcile(delegated.cluster)
    assert [pod.phase for pod in job.pods.all()] == [PodPhase.RUNNING] * 2


def test_deleted_pod_returns_as_a_new_attempt(delegated, plane, volcano_namespace) -> None:
    job = submit(delegated, seconds=1000)
    reconcile_until_phase(delegated, job, JobPhase.RUNNING)
    delegated.reconcile_until(lambda: job.pods.filter(phase=PodPhase.RUNNING).exists())
    (volcano_job,) = list_jobs(plane, volcano_namespace)
    plane.request("DELETE", f"/api/v1/namespaces/{volcano_namespace}/pods/{volcano_job['metadata']['name']}-main-0")
    delegated.reconcile_until(lambda: job.pods.filter(attempt=2, phase=PodPhase.RUNNING).exists())
    first = job.pods.get(attempt=1)
    assert (first.phase, first.stopping) == (PodPhase.FAILED, True)
    assert rows.findings() == []


def test_deadline_of_a_volcano_job_fails_it(delegated) -> None:
    job = submit(delegated, seconds=1000, active_deadline_seconds=2)
    reconcile_until_phase(delegated, job, JobPhase.FAILED)
    assert Job.objects.get(pk=job.pk).reason == "DeadlineExceeded"
    delegated.reconcile_until(lambda: all(pod.is_final for pod in job.pods.all()))
    assert phase(job) == JobPhase.FAILED
    assert rows.findings() == []


def test_pending_reason_of_a_full_queue_is_volcanos(delegated, plane) -> None:
    name = f"q-{delegated.cluster.config['namespace']}"
    values = {"capability": {"cpu": "1"}}
    queues.create(cluster=delegated.cluster, name=name, values=values, actor=PLATFORM, now=clock.now())
    first = submit(delegated, "first", seconds=1000, queue=name)
    reconcile_until_phase(delegated, first, JobPhase.RUNNING)
    job = submit(delegated, "second", seconds=1000, queue=name)
    delegated.reconcile_until(lambda: "insufficient cpu" in reason_of(job))
    assert reason_of(job).startswith("Volcano says: queue resource quota")
    assert job.pods.count() == 0
    for one in (first, job):
        send(delegated, one, LifecycleAction.TERMINATE_JOB)
        reconcile_until_phase(delegated, one, JobPhase.TERMINATED)
    plane.request("DELETE", f"{QUEUES}/{name}")


def test_files_of_a_job_exist_before_its_pods_and_are_deleted_with_it(delegated, plane, volcano_namespace) -> None:
    shm = [{"name": "shm", "empty_dir": {"medium": "Memory", "size_limit": "1Gi"}}]
    mounts = [{"name": "shm", "mount_path": "/dev/shm"}]
    job = submit(delegated, files={"train.py": "print(1)"}, volumes=shm, mounts=mounts)
    reconcile_until_phase(delegated, job, JobPhase.COMPLETED)
    maps = f"/api/v1/namespaces/{volcano_namespace}/configmaps?labelSelector=hekla.dev/job={job.uid.hex}"
    assert [one["data"] for one in plane.request("GET", maps)["items"]] == [{"train.py": "print(1)"}]
    services.delete(Job.objects.get(pk=job.pk), user=delegated.alice, now=clock.now())
    delegated.reconcile_until(lambda: Job.objects.get(pk=job.pk).cleaned_at is not None)
    assert plane.request("GET", maps)["items"] == []
    assert audit.findings() == []


def test_claim_of_a_job_exists_before_it_and_is_deleted_with_it(delegated, plane, volcano_namespace) -> None:
    """Nothing provisions claims here, so the pod stays pending."""
    claim = [{"name": "out", "volume_claim": {"storage": "1Gi"}}]
    job = submit(delegated, volumes=claim, mounts=[{"name": "out", "mount_path": "/out"}])
    labelled = f"labelSelector=hekla.dev/job={job.uid.hex}"
    place = f"/api/v1/namespaces/{volcano_namespace}/persistentvolumeclaims?{labelled}"
    delegated.reconcile_until(lambda: len(list_jobs(plane, volcano_namespace)) > 0)
    assert len(plane.request("GET", place)["items"]) == 1
    send(delegated, job, LifecycleAction.TERMINATE_JOB)
    reconcile_until_phase(delegated, job, JobPhase.TERMINATED)
    services.delete(Job.objects.get(pk=job.pk), user=delegated.alice, now=clock.now())
    delegated.reconcile_until(lambda: plane.request("GET", place)["items"] == [])


def test_job_plugins_are_those_of_volcano(delegated, plane, volcano_namespace) -> None:
    job = submit(delegated, seconds=1000, replicas=2, plugins={"env": [], "svc": []})
    delegated.reconcile_until(lambda: job.pods.filter(phase=PodPhase.RUNNING).count() == 2)
    pods = plane.request("GET", f"/api/v1/namespaces/{volcano_namespace}/pods")["items"]
    variables = [{one["name"]: one for one in pod["spec"]["containers"][0]["env"]} for pod in pods]
    assert sorted(env["VC_TASK_INDEX"]["value"] for env in variables) == ["0", "1"]
    assert all("VC_MAIN_HOSTS" in env for env in variables)
    send(delegated, job, LifecycleAction.TERMINATE_JOB)
    reconcile_until_phase(delegated, job, JobPhase.TERMINATED)


def test_first_replica_completes_the_job(delegated, plane, volcano_namespace) -> None:
    """Volcano would wait for all replicas."""
    completes = [{"events": ["TaskCompleted"], "action": "CompleteJob"}]
    job = submit(delegated, seconds=1000, replicas=2, success_policy="FirstReplica", policies=completes)
    delegated.reconcile_until(lambda: job.pods.filter(phase=PodPhase.RUNNING).count() == 2)
    end_pods(plane, volcano_namespace, "-0")
    reconcile_until_phase(delegated, job, JobPhase.COMPLETED)
    delegated.reconcile_until(lambda: all(pod.is_final for pod in job.pods.all()))
    assert [pod.phase for pod in job.pods.order_by("index")] == ["succeeded", "failed"]
    assert audit.findings() == []


def test_first_replica_with_another_action_is_refused(delegated) -> None:
    restarts = [{"events": ["TaskCompleted"], "action": "RestartJob"}]
    job = submit(delegated, replicas=2, success_policy="FirstReplica", policies=restarts)
    reconcile_until_phase(delegated, job, JobPhase.FAILED)
    assert "Volcano completes a task with all its replicas" in Job.objects.get(pk=job.pk).message


SETTINGS = {
    "host_ports": [{"host_port": 30080, "container_port": 80}],
    "pull_secrets": ["registry"],
    "security_context": {"run_as_user": 2000, "read_only_root_filesystem": True},
}


def test_settings_of_pods_reach_volcano_if_the_cluster_allows_them(delegated, plane, volcano_namespace) -> None:
    job = submit(delegated, "refused", settings=SETTINGS)
    reconcile_until_phase(delegated, job, JobPhase.FAILED)
    assert "The pull secret “registry” is not for jobs" in Job.objects.get(pk=job.pk).message
    config = {**delegated.cluster.config, "host_ports": ["30000-31000"], "pull_secrets": ["registry"]}
    clusters.change(delegated.cluster, {"config": config}, actor=PLATFORM, now=clock.now())
    first = submit(delegated, "first", settings=SETTINGS, seconds=1000)
    reconcile_until_phase(delegated, first, JobPhase.RUNNING)
    (pod,) = plane.request("GET", PODS.format(volcano_namespace))["items"]
    (container,) = pod["spec"]["containers"]
    assert container["ports"] == [{"containerPort": 80, "hostPort": 30080, "protocol": "TCP"}]
    assert (
        container["securityContext"].items()
        >= {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
        }.items()
    )
    assert (pod["spec"]["securityContext"]["runAsUser"], pod["spec"]["imagePullSecrets"]) == (
        2000,
        [{"name": "registry"}],
    )
