"""On a cluster where each tenant has a namespace of its own, and where tenants share one."""

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
def apart(
    small_cluster: ControlPlane, tenants_namespace: str, transactional_db: None, settings: Any, tmp_path: Path
) -> Iterator[World]:
    """A machine of its own, and rights for a namespace for each tenant."""
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
def shop(apart: World) -> Tenant:
    """Another tenant, of which Alice is a member too."""
    made = tenancy.create(slug="Shop_2", name="Shop", actor=PLATFORM, now=clock.now())
    tenancy.add_member(made, apart.alice, "admin", actor=PLATFORM, now=clock.now())
    return made


def submit(world: World, seconds: str, *, tenant: Tenant | None = None, replicas: int = 1, name: str = "one") -> Job:
    task: dict[str, Any] = {"name": "main", "command": ["x"], "resources": {"cpu": "1"}, "replicas": replicas}
    task["env"] = {"HEKLA_SIM_SECONDS": seconds}
    spec = JobSpec.parse({"name": name, "tasks": [task], "files": {"a": "b"}})
    return services.submit(spec=spec, tenant=tenant or world.tenant, user=world.alice, now=clock.now())


def phases(job: Job) -> set[str]:
    return set(Pod.objects.filter(job=job).values_list("phase", flat=True))


def run(world: World, *jobs: Job) -> None:
    world.turn_until(lambda: all(phases(job) == {PodPhase.RUNNING} for job in jobs))


def abort(world: World, job: Job) -> None:
    services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    world.turn_until(lambda: Job.objects.get(pk=job.pk).phase == JobPhase.ABORTED)


def things(plane: ControlPlane, world: World, kinds: tuple[str, ...] = KINDS) -> dict[str, set[str]]:
    """By namespace of a tenant, the uids of what is there of jobs."""
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


def bound(world: World, **resources: str) -> None:
    quotas.bound(
        tenant=world.tenant,
        of=Quota.Of.TENANT,
        user=None,
        bounds={"resources": resources},
        actor=PLATFORM,
        now=clock.now(),
    )


def hard(plane: ControlPlane, world: World) -> list[dict[str, str]]:
    place = f"/api/v1/namespaces/{world.cluster.config['namespace']}-lab/resourcequotas"
    return [one["spec"]["hard"] for one in plane.request("GET", place)["items"]]


def test_jobs_of_two_tenants_run_in_two_namespaces_and_leave_nothing_there(apart, shop, small_cluster) -> None:
    ours, theirs = submit(apart, "1000", replicas=2), submit(apart, "1000", tenant=shop)
    run(apart, ours, theirs)
    there = things(small_cluster, apart, ("pods",))
    assert sorted(map(len, there.values())) == [1, 2]
    assert {name.removeprefix(apart.cluster.config["namespace"])[:5] for name in there} == {"-lab", "-shop"}
    for job in (ours, theirs):
        abort(apart, job)
        services.delete(job, user=apart.alice, now=clock.now())
    apart.turn_until(lambda: all(Job.objects.get(pk=job.pk).cleaned_at for job in (ours, theirs)))
    assert not any(things(small_cluster, apart).values())
    assert not backend_of(apart.cluster).inventory().present


def test_a_pod_that_is_made_elsewhere_under_the_name_of_anothers_ends_nothing(apart, shop, small_cluster) -> None:
    """Nor is its log taken for that of the other."""
    ours, theirs = submit(apart, "1000"), submit(apart, "1000", tenant=shop)
    run(apart, ours, theirs)
    base, key = apart.cluster.config["namespace"], key_of(ours.pods.get())
    (pod,) = small_cluster.request("GET", f"/api/v1/namespaces/{base}-lab/pods")["items"]
    (other,) = (name for name in things(small_cluster, apart) if "shop" in name)
    labels = {**pod["metadata"]["labels"], "hekla.dev/tenant": other.removeprefix(f"{base}-")}
    place = f"/api/v1/namespaces/{other}/pods"
    spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "x"}]}
    small_cluster.request("POST", place, {"metadata": {"name": key.name, "labels": labels}, "spec": spec})
    failed, path = {"status": {"phase": "Failed"}}, f"{place}/{key.name}"
    small_cluster.request("PATCH", f"{path}/status", failed, content_type="application/merge-patch+json")
    for _ in range(2):
        for _ in range(3):
            controllers.reconcile(apart.cluster)
            backend_of(apart.cluster).wait(1.0)
        assert [phases(job) for job in (ours, theirs)] == [{PodPhase.RUNNING}] * 2, describe()
        controllers.reset()
    assert "deletionTimestamp" not in small_cluster.request("GET", path)["metadata"]
    assert not backend_of(apart.cluster).logs(key, offset=0, limit=10).complete
    abort(apart, ours)
    small_cluster.request("DELETE", path, {"gracePeriodSeconds": 0})


def test_a_controller_that_begins_anew_finds_the_pods_of_all_tenants(apart, shop, small_cluster) -> None:
    jobs = submit(apart, "1000", replicas=2), submit(apart, "1000", tenant=shop)
    run(apart, *jobs)
    before = things(small_cluster, apart, ("pods",))
    controllers.reset()
    clusters.change(
        apart.cluster, {"config": {**apart.cluster.config, "image": "other"}}, actor=PLATFORM, now=clock.now()
    )
    backend = backend_of(apart.cluster)  # opened anew, since the configuration is another
    for _ in range(3):
        controllers.reconcile(apart.cluster)
    assert things(small_cluster, apart, ("pods",)) == before
    assert [phases(job) for job in jobs] == [{PodPhase.RUNNING}] * 2, describe()
    assert backend.inventory().alive == {key_of(pod) for pod in Pod.objects.all()}


def test_the_quota_of_a_tenant_follows_what_is_set_in_the_console(apart, small_cluster) -> None:
    bound(apart, cpu="2", memory="4Gi")
    run(apart, submit(apart, "1000"))
    assert hard(small_cluster, apart) == [{"requests.cpu": "2", "requests.memory": "4Gi"}]
    bound(apart, cpu="3")
    apart.turn_until(lambda: hard(small_cluster, apart) == [{"requests.cpu": "3"}])
    bound(apart)
    apart.turn_until(lambda: hard(small_cluster, apart) == [])


def test_why_the_cluster_does_not_take_its_pods_is_read_on_the_page_of_a_job_and_said_once(
    apart, small_cluster, monkeypatch
) -> None:
    monkeypatch.setattr(start_delays, "REPORTED_AFTER_SECONDS", 0.0)
    run(apart, first := submit(apart, "1000"))
    theirs = filled(apart, small_cluster)
    second = submit(apart, "1000", name="two", replicas=2)
    told = LoggedEvent.objects.filter(subject=f"job:{second.uid}", kind="JobDelayed")
    apart.turn_until(told.exists)
    for _ in range(3):
        controllers.reconcile(apart.cluster)
    (line,) = history.lines(list(told))
    assert "exceeded quota: theirs" in line.sentence
    assert second.uid.hex not in line.sentence
    small_cluster.request("DELETE", theirs)
    run(apart, first, second)


def test_a_job_for_whose_pods_there_is_no_room_can_be_aborted(apart, small_cluster) -> None:
    """There is no room either for the pods that stand in the way of those that were not made."""
    run(apart, submit(apart, "1000"))
    theirs, before = filled(apart, small_cluster), things(small_cluster, apart, ("pods",))
    second = submit(apart, "1000", name="two", replicas=2)
    apart.turn_until(lambda: phases(second) == {PodPhase.BOUND})
    abort(apart, second)
    small_cluster.request("DELETE", theirs)
    for _ in range(3):
        controllers.reconcile(apart.cluster)
    assert things(small_cluster, apart, ("pods",)) == before


def filled(world: World, plane: ControlPlane) -> str:
    """A quota that somebody else made, with room for the pod that is there and no other."""
    place = f"/api/v1/namespaces/{world.cluster.config['namespace']}-lab/resourcequotas"
    plane.request("POST", place, {"metadata": {"name": "theirs"}, "spec": {"hard": {"pods": "1"}}})
    quota = f"{place}/theirs"
    plane.wait_until(lambda: plane.request("GET", quota).get("status", {}).get("used") == {"pods": "1"}, 120.0)
    return quota


def test_jobs_that_wait_for_one_another_under_a_quota_all_run(apart) -> None:
    """The server hears of the end of a pod later than we: what it refuses until then is tried again."""
    bound(apart, cpu="1", memory="1Gi")
    jobs = [submit(apart, "0.1", name=f"j{index}") for index in range(3)]
    apart.turn_until(lambda: all(Job.objects.get(pk=job.pk).phase == JobPhase.COMPLETED for job in jobs))


def test_a_log_is_read_wherever_the_pod_is_and_after_it_is_gone(apart) -> None:
    job = submit(apart, "0.1")
    apart.turn_until(lambda: Job.objects.get(pk=job.pk).phase == JobPhase.COMPLETED)
    key, backend = key_of(Pod.objects.get(job=job)), backend_of(apart.cluster)
    first = backend.logs(key, offset=0, limit=1000).data
    assert b"the last line" in first
    apart.turn_until(lambda: not backend.observe(None).pods)
    assert backend.logs(key, offset=0, limit=1000).data == first


def test_pods_are_not_moved_while_they_are_alive_nor_left_behind_afterwards(apart) -> None:
    shared = {**apart.cluster.config, "namespaces": "shared"}
    job = submit(apart, "1000", replicas=2)
    run(apart, job)
    assert "are running" in why_not(apart, shared)
    abort(apart, job)
    with transaction.atomic():
        namespace_change.require_nobody_there(apart.cluster, shared, now=clock.now())
    with pytest.raises(Invalid, match="resources of 1 jobs"):
        namespace_change.require_nothing_left(apart.cluster, shared)
    services.delete(job, user=apart.alice, now=clock.now())
    apart.turn_until(lambda: Job.objects.get(pk=job.pk).cleaned_at is not None)
    namespace_change.require_nothing_left(apart.cluster, shared)


def why_not(world: World, config: dict[str, Any]) -> str:
    with pytest.raises(Invalid) as refused, transaction.atomic():
        namespace_change.require_nobody_there(world.cluster, config, now=clock.now())
    controllers.reconcile(world.cluster)  # the refusal took the lease from nobody
    return str(refused.value)


@pytest.mark.parametrize("world", ["kubernetes"], indirect=True)
def test_what_pods_left_in_a_shared_namespace_is_found_when_tenants_are_apart(
    world: World, small_cluster: ControlPlane
) -> None:
    apart = {**world.cluster.config, "namespaces": "tenant"}
    job = submit(world, "1000", replicas=2)
    run(world, job)
    place = f"/apis/networking.k8s.io/v1/namespaces/{world.cluster.config['namespace']}/networkpolicies"
    assert [one["metadata"]["name"] for one in small_cluster.request("GET", place)["items"]] == ["hekla-lab"]
    assert "are running" in why_not(world, apart)
    abort(world, job)
    namespace_change.require_nothing_left(world.cluster, apart)
