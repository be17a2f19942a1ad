"""Kubernetes clusters with a namespace for each tenant, and with a shared one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from tests.controller.conftest import SIZE, World, describe
from tests.kubernetes.control_plane import ControlPlane

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.job_history import history
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.quotas import services as quotas
from hekla.apps.quotas.models import Quota
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.backends.kubernetes import pod_security
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.cluster_access import namespace_change
from hekla.controller import start_delays
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.controller.observations import key_of
from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase, PodPhase
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock

KINDS = ("pods", "services", "configmaps", "secrets")

pytestmark = pytest.mark.kubernetes


@pytest.fixture
def namespaced(
    small_cluster: ControlPlane, tenants_namespace: str, transactional_db: None, settings: Any, tmp_path: Path
) -> Iterator[World]:
    """A node of this test, and rights for a namespace for each tenant."""
    settings.HEKLA_HOME, labels = tmp_path, {"hekla.dev/test": tenants_namespace}
    controllers.reset()
    machines = small_cluster.add_nodes(1, allocatable=SIZE, labels=labels)
    (tmp_path / "kubeconfigs").mkdir()
    (tmp_path / "kubeconfigs" / "test").write_text(json.dumps(small_cluster.kubeconfig(small_cluster.tenants_token)))
    place = {"kubeconfig": "test", "namespace": tenants_namespace, "namespaces": "tenant"}
    made = World.found("kubernetes", {**place, "node_labels": labels})
    yield made
    backend_of(made.cluster).close()
    controllers.reset()
    small_cluster.remove_nodes(machines)


@pytest.fixture
def shop(namespaced: World) -> Tenant:
    """Another tenant with Alice as a member."""
    made = tenancy.create(slug="Shop_2", name="Shop", actor=PLATFORM, now=clock.now())
    tenancy.add_member(made, namespaced.alice, "admin", actor=PLATFORM, now=clock.now())
    return made


def submit(world: World, seconds: str, *, tenant: Tenant | None = None, replicas: int = 1, name: str = "one") -> Job:
    task: dict[str, Any] = {"name": "main", "command": ["x"], "resources": {"cpu": "1"}, "replicas": replicas}
    task["env"] = {"HEKLA_SIM_SECONDS": seconds}
    spec = JobSpec.parse({"name": name, "tasks": [task], "files": {"a": "b"}})
    return services.submit(spec=spec, tenant=tenant or world.tenant, user=world.alice, now=clock.now())


def phases(job: Job) -> set[str]:
    return set(Pod.objects.filter(job=job).values_list("phase", flat=True))


def run(world: World, *jobs: Job) -> None:
    world.reconcile_until(lambda: all(phases(job) == {PodPhase.RUNNING} for job in jobs))


def abort(world: World, job: Job) -> None:
    """Aborts the job and waits for the end of its pods."""
    services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: Job.objects.get(pk=job.pk).phase == JobPhase.ABORTED)


def objects(plane: ControlPlane, world: World, kinds: tuple[str, ...] = KINDS) -> dict[str, set[str]]:
    """By namespace of a tenant, the uids of the objects of jobs."""
    spaces = plane.request("GET", "/api/v1/namespaces?labelSelector=hekla.dev/tenant")["items"]
    names = [one["metadata"]["name"] for one in spaces]
    return {
        name: {
            one["metadata"]["uid"]
            for kind in kinds
            for one in plane.request("GET", f"/api/v1/namespaces/{name}/{kind}?labelSelector=hekla.dev/job")["items"]
        }
        for name in names
        if name.startswith(world.cluster.config["namespace"])
    }


def set_quota(world: World, **resources: str) -> None:
    quotas.bound(
        tenant=world.tenant,
        of=Quota.Of.TENANT,
        user=None,
        bounds={"resources": resources},
        actor=PLATFORM,
        now=clock.now(),
    )


def hard_limits(plane: ControlPlane, world: World) -> list[dict[str, str]]:
    place = f"/api/v1/namespaces/{world.cluster.config['namespace']}-lab/resourcequotas"
    return [one["spec"]["hard"] for one in plane.request("GET", place)["items"]]


def test_jobs_of_two_tenants_run_in_two_namespaces_and_leave_nothing(namespaced, shop, small_cluster) -> None:
    first, second = submit(namespaced, "1000", replicas=2), submit(namespaced, "1000", tenant=shop)
    run(namespaced, first, second)
    pods = objects(small_cluster, namespaced, ("pods",))
    assert sorted(map(len, pods.values())) == [1, 2]
    assert {name.removeprefix(namespaced.cluster.config["namespace"])[:5] for name in pods} == {"-lab", "-shop"}
    for job in (first, second):
        abort(namespaced, job)
        services.delete(job, user=namespaced.alice, now=clock.now())
    namespaced.reconcile_until(lambda: all(Job.objects.get(pk=job.pk).cleaned_at for job in (first, second)))
    assert not any(objects(small_cluster, namespaced).values())
    assert not backend_of(namespaced.cluster).inventory().present


def test_forged_pod_in_another_namespace_has_no_effect_on_the_job(namespaced, shop, small_cluster) -> None:
    """Nor does its log count as the log of the job's pod."""
    first, second = submit(namespaced, "1000"), submit(namespaced, "1000", tenant=shop)
    run(namespaced, first, second)
    base, key = namespaced.cluster.config["namespace"], key_of(first.pods.get())
    (pod,) = small_cluster.request("GET", f"/api/v1/namespaces/{base}-lab/pods")["items"]
    (other,) = (name for name in objects(small_cluster, namespaced) if "shop" in name)
    labels = {**pod["metadata"]["labels"], "hekla.dev/tenant": other.removeprefix(f"{base}-")}
    place = f"/api/v1/namespaces/{other}/pods"
    spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "x"}]}
    pod_security.harden(spec, KubernetesConfig(pod_security="restricted"))
    small_cluster.request("POST", place, {"metadata": {"name": key.name, "labels": labels}, "spec": spec})
    failed, path = {"status": {"phase": "Failed"}}, f"{place}/{key.name}"
    small_cluster.request("PATCH", f"{path}/status", failed, content_type="application/merge-patch+json")
    for _ in range(2):
        for _ in range(3):
            controllers.reconcile(namespaced.cluster)
            backend_of(namespaced.cluster).wait(1.0)
        assert [phases(job) for job in (first, second)] == [{PodPhase.RUNNING}] * 2, describe()
        controllers.reset()
    assert "deletionTimestamp" not in small_cluster.request("GET", path)["metadata"]
    assert not backend_of(namespaced.cluster).logs(key, offset=0, limit=10).complete
    abort(namespaced, first)
    small_cluster.request("DELETE", path, {"gracePeriodSeconds": 0})


def test_restarted_controller_finds_the_pods_of_all_tenants(namespaced, shop, small_cluster) -> None:
    jobs = submit(namespaced, "1000", replicas=2), submit(namespaced, "1000", tenant=shop)
    run(namespaced, *jobs)
    before = objects(small_cluster, namespaced, ("pods",))
    controllers.reset()
    clusters.change(
        namespaced.cluster, {"config": {**namespaced.cluster.config, "image": "other"}}, actor=PLATFORM, now=clock.now()
    )
    backend = backend_of(namespaced.cluster)  # a new backend, because the configuration changed
    for _ in range(3):
        controllers.reconcile(namespaced.cluster)
    assert objects(small_cluster, namespaced, ("pods",)) == before
    assert [phases(job) for job in jobs] == [{PodPhase.RUNNING}] * 2, describe()
    assert backend.inventory().alive == {key_of(pod) for pod in Pod.objects.all()}


def test_resource_quota_follows_the_quota_of_the_tenant(namespaced, small_cluster) -> None:
    set_quota(namespaced, cpu="2", memory="4Gi")
    run(namespaced, submit(namespaced, "1000"))
    assert hard_limits(small_cluster, namespaced) == [{"requests.cpu": "2", "requests.memory": "4Gi"}]
    set_quota(namespaced, cpu="3")
    namespaced.reconcile_until(lambda: hard_limits(small_cluster, namespaced) == [{"requests.cpu": "3"}])
    set_quota(namespaced)
    namespaced.reconcile_until(lambda: hard_limits(small_cluster, namespaced) == [])


def test_refusal_by_the_cluster_is_in_the_history_once(namespaced, small_cluster, monkeypatch) -> None:
    monkeypatch.setattr(start_delays, "REPORTED_AFTER_SECONDS", 0.0)
    run(namespaced, first := submit(namespaced, "1000"))
    quota = create_full_quota(namespaced, small_cluster)
    second = submit(namespaced, "1000", name="two", replicas=2)
    delays = LoggedEvent.objects.filter(subject=f"job:{second.uid}", kind="JobDelayed")
    namespaced.reconcile_until(delays.exists)
    for _ in range(3):
        controllers.reconcile(namespaced.cluster)
    (line,) = history.lines(list(delays))
    assert "exceeded quota: theirs" in line.sentence
    assert second.uid.hex not in line.sentence
    small_cluster.request("DELETE", quota)
    run(namespaced, first, second)


def test_job_refused_by_a_resource_quota_can_be_aborted(namespaced, small_cluster) -> None:
    """The quota has no room either for the pods that are created to reserve the names of the missing ones."""
    run(namespaced, submit(namespaced, "1000"))
    quota, before = create_full_quota(namespaced, small_cluster), objects(small_cluster, namespaced, ("pods",))
    second = submit(namespaced, "1000", name="two", replicas=2)
    namespaced.reconcile_until(lambda: phases(second) == {PodPhase.BOUND})
    abort(namespaced, second)
    small_cluster.request("DELETE", quota)
    for _ in range(3):
        controllers.reconcile(namespaced.cluster)
    assert objects(small_cluster, namespaced, ("pods",)) == before


def create_full_quota(world: World, plane: ControlPlane) -> str:
    """A foreign quota with room for the existing pod only."""
    place = f"/api/v1/namespaces/{world.cluster.config['namespace']}-lab/resourcequotas"
    plane.request("POST", place, {"metadata": {"name": "theirs"}, "spec": {"hard": {"pods": "1"}}})
    quota = f"{place}/theirs"
    plane.wait_until(lambda: plane.request("GET", quota).get("status", {}).get("used") == {"pods": "1"}, 120.0)
    return quota


def test_jobs_that_wait_for_a_resource_quota_all_run(namespaced) -> None:
    """The API server learns later than Hekla that a pod ended. Pods refused until then are retried."""
    set_quota(namespaced, cpu="1", memory="1Gi")
    jobs = [submit(namespaced, "0.1", name=f"j{index}") for index in range(3)]
    namespaced.reconcile_until(lambda: all(Job.objects.get(pk=job.pk).phase == JobPhase.COMPLETED for job in jobs))


def test_log_of_a_namespaced_pod_is_readable_also_after_its_deletion(namespaced) -> None:
    job = submit(namespaced, "0.1")
    namespaced.reconcile_until(lambda: Job.objects.get(pk=job.pk).phase == JobPhase.COMPLETED)
    key, backend = key_of(Pod.objects.get(job=job)), backend_of(namespaced.cluster)
    first = backend.logs(key, offset=0, limit=1000).data
    assert b"the last line" in first
    namespaced.reconcile_until(lambda: not backend.observe(None).pods)
    assert backend.logs(key, offset=0, limit=1000).data == first


def test_namespace_cannot_change_while_pods_or_objects_exist(namespaced) -> None:
    shared = {**namespaced.cluster.config, "namespaces": "shared"}
    job = submit(namespaced, "1000", replicas=2)
    run(namespaced, job)
    assert "are running" in change_refusal(namespaced, shared)
    abort(namespaced, job)
    with transaction.atomic():
        namespace_change.require_no_live_pods(namespaced.cluster, shared)
    with pytest.raises(Invalid, match="resources of 1 jobs"):
        namespace_change.require_nothing_left(namespaced.cluster, shared)
    services.delete(job, user=namespaced.alice, now=clock.now())
    namespaced.reconcile_until(lambda: Job.objects.get(pk=job.pk).cleaned_at is not None)
    namespace_change.require_nothing_left(namespaced.cluster, shared)


def change_refusal(world: World, config: dict[str, Any]) -> str:
    with pytest.raises(Invalid) as refused, transaction.atomic():
        namespace_change.require_no_live_pods(world.cluster, config)
    controllers.reconcile(world.cluster)  # the refusal must not have taken the lease
    return str(refused.value)


@pytest.mark.parametrize("world", ["kubernetes"], indirect=True)
def test_objects_in_the_shared_namespace_are_found_after_a_namespace_change(
    world: World, small_cluster: ControlPlane
) -> None:
    namespaced = {**world.cluster.config, "namespaces": "tenant"}
    job = submit(world, "1000", replicas=2)
    run(world, job)
    place = f"/apis/networking.k8s.io/v1/namespaces/{world.cluster.config['namespace']}/networkpolicies"
    policies = [one["metadata"]["name"] for one in small_cluster.request("GET", place)["items"]]
    assert policies == ["hekla-lab", "hekla-lab-egress"]
    assert "are running" in change_refusal(world, namespaced)
    abort(world, job)
    namespace_change.require_nothing_left(world.cluster, namespaced)
