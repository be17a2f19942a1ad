"""Volumes on a real API server: pods run where their volumes can be reached, and claims are bound before pods."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.controller.conftest import SIZE, World
from tests.kubernetes.control_plane import ControlPlane
from tests.simulation.conftest import spec

from hekla.apps.clusters.models import ClusterObject
from hekla.apps.clusters.selectors import object_digests
from hekla.apps.job_history import labels
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.phases import PodPhase
from hekla.domain.policies import LifecycleAction
from hekla.domain.scheduling_inputs import Input
from hekla.engine.policy import DEFAULT_POLICY_TEXT, parse
from hekla.lib import clock
from hekla.scheduling import supplies

pytestmark = pytest.mark.parametrize("world", ["kubernetes"], indirect=True)
Object = dict[str, Any]
VOLUMES, CLASSES = "/api/v1/persistentvolumes", "/apis/storage.k8s.io/v1/storageclasses"
CSI_NODES, CSI_DRIVERS = "/apis/storage.k8s.io/v1/csinodes", "/apis/storage.k8s.io/v1/csidrivers"
SELECTED, PROVISIONER = "volume.kubernetes.io/selected-node", "disks.test"


@pytest.fixture
def one_machine(one_machine: Object, volumes_namespace: str) -> Object:
    """The configuration of a cluster whose volumes count."""
    return {**one_machine, "storage": True, "claims": ["data", "more", "late"]}


class Storage:
    """Classes, volumes and claims of a test. `nodes`: the first has the room of two pods, as the second."""

    def __init__(self, plane: ControlPlane, namespace: str, nodes: list[str]) -> None:
        self.plane, self.namespace, self.nodes = plane, namespace, nodes
        self.local, self.disks, self.at_once = (f"{namespace}-{one}" for one in ("local", "disks", "at-once"))
        self._volumes: list[str] = []
        self._class(self.local, "kubernetes.io/no-provisioner", "WaitForFirstConsumer")
        self._class(self.disks, PROVISIONER, "WaitForFirstConsumer")
        self._class(self.at_once, PROVISIONER, "Immediate")

    def _class(self, name: str, provisioner: str, mode: str) -> None:
        body = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}
        self.plane.request("POST", CLASSES, body)

    def add_volume(self, name: str, node: str, storage_class: str = "", **more: Object) -> str:
        """A volume of one gibibyte that one node reaches."""
        host = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        volume = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class or self.local,
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}},
            **(more or {"local": {"path": "/mnt"}}),
        }
        self._volumes.append(f"{self.namespace}-{name}")
        body = {"metadata": {"name": self._volumes[-1]}, "spec": volume}
        self.plane.request("POST", VOLUMES, body)
        return self._volumes[-1]

    def add_claim(self, name: str, storage_class: str) -> None:
        wanted = {"requests": {"storage": "1Gi"}}
        claim = {"accessModes": ["ReadWriteOnce"], "resources": wanted, "storageClassName": storage_class}
        self.plane.request("POST", self._claims, {"metadata": {"name": name}, "spec": claim})

    def report_room(self, node: str, size: str) -> None:
        """Report the room for volumes of the class for disks on a node, as the driver would."""
        place = f"/apis/storage.k8s.io/v1/namespaces/{self.namespace}/csistoragecapacities"
        report = {
            "metadata": {"name": node},
            "storageClassName": self.disks,
            "nodeTopology": {"matchLabels": {"kubernetes.io/hostname": node}},
            "capacity": size,
        }
        self.plane.request("POST", place, report)

    def claims(self) -> dict[str, Object]:
        return {one["metadata"]["name"]: one for one in self.plane.request("GET", self._claims)["items"]}

    def provision(self) -> None:
        """Make a volume for each claim of the class for disks with a node, as the class's provisioner would."""
        known = {one["metadata"]["name"] for one in self.plane.request("GET", VOLUMES)["items"]}
        for name, claim in self.claims().items():
            node = claim["metadata"].get("annotations", {}).get(SELECTED)
            is_new = f"{self.namespace}-{name}" not in known
            if is_new and claim["spec"]["storageClassName"] == self.disks and node:
                wanted = {field: claim["metadata"][field] for field in ("namespace", "name", "uid")}
                driven = {"driver": PROVISIONER, "volumeHandle": name}
                self.add_volume(
                    name, node, self.disks, csi=driven, claimRef={"kind": "PersistentVolumeClaim", **wanted}
                )

    def remove(self) -> None:
        for name in self._volumes:
            self.plane.request("DELETE", f"{VOLUMES}/{name}")
        for name in (self.local, self.disks, self.at_once):
            self.plane.request("DELETE", f"{CLASSES}/{name}")

    @property
    def _claims(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/persistentvolumeclaims"


@pytest.fixture
def storage(world: World, one_machine: Object, small_cluster: ControlPlane) -> Iterator[Storage]:
    more = small_cluster.add_nodes(1, allocatable=SIZE, labels=one_machine["node_labels"])
    labelled = "/api/v1/nodes?labelSelector=hekla.dev/test=" + one_machine["namespace"]
    found = sorted(one["metadata"]["name"] for one in small_cluster.request("GET", labelled)["items"])
    made = Storage(small_cluster, one_machine["namespace"], found)
    yield made
    made.remove()
    small_cluster.remove_nodes(more)


def submit(world: World, name: str, *claims: str, replicas: int = 1, new: Object | None = None, cpu: str = "1") -> Job:
    """A job that mounts existing claims, and one that is created for it."""
    volumes: list[Object] = [{"name": one, "volume_claim_name": one} for one in claims]
    volumes += [{"name": "new", "volume_claim": new}] if new else []
    mounts = [{"name": one["name"], "mount_path": f"/{one['name']}"} for one in volumes]
    wanted = spec(name, replicas, cpu=cpu, volume_mounts=mounts, volumes=volumes)
    return services.submit(spec=wanted, tenant=world.tenant, user=world.alice, now=clock.now())


def running(job: Job) -> list[str]:
    """The nodes of its running pods."""
    return list(Pod.objects.filter(job=job, phase=PodPhase.RUNNING).values_list("node", flat=True))


def waiting(job: Job) -> str:
    found = Job.objects.get(pk=job.pk).waiting
    return labels.reason(found[0]) if found else ""


def end(world: World, job: Job) -> None:
    services.command(Job.objects.get(pk=job.pk), LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())


def test_local_volumes_are_bound_where_pods_run(world: World, storage: Storage) -> None:
    volume = storage.add_volume("one", storage.nodes[1])
    missing = submit(world, "missing", "late")
    world.reconcile_until(lambda: "volume claim not found" in waiting(missing))
    assert not ClusterObject.objects.filter(kind="PersistentVolumeClaim").exists()
    storage.add_claim("data", storage.local)
    storage.add_claim("more", storage.local)
    first, second = submit(world, "first", "data"), submit(world, "second", "more")
    world.reconcile_until(lambda: running(first) == [storage.nodes[1]])
    claim = storage.claims()["data"]
    assert (claim["spec"]["volumeName"], claim["status"]["phase"]) == (volume, "Bound")
    assert SELECTED not in claim["metadata"].get("annotations", {})
    world.reconcile_until(lambda: "no free volume" in waiting(second))
    third = storage.add_volume("two", storage.nodes[0])
    world.reconcile_until(lambda: running(second) == [storage.nodes[0]])
    assert storage.claims()["more"]["spec"]["volumeName"] == third
    storage.add_claim("late", storage.at_once)
    world.reconcile_until(lambda: "volume claim not bound" in waiting(missing))

    kinds = {kind for kind, _name in object_digests(world.cluster)}
    assert {"PersistentVolume", "PersistentVolumeClaim", "StorageClass"} <= kinds
    found = supplies.supplied(world.cluster, parse(DEFAULT_POLICY_TEXT))
    assert found[Input.STORAGE] == "PersistentVolumes, claims, StorageClasses and CSI objects of the cluster"
    for job in (missing, first, second):
        end(world, job)


def test_volumes_are_provisioned_on_the_node_of_the_first_pod(world: World, storage: Storage) -> None:
    csi_node = {"drivers": [{"name": PROVISIONER, "nodeID": "n", "topologyKeys": [], "allocatable": {"count": 1}}]}
    storage.plane.request("POST", CSI_NODES, {"metadata": {"name": storage.nodes[0]}, "spec": csi_node})
    storage.add_claim("data", storage.disks)
    storage.add_claim("more", storage.disks)
    jobs = [
        submit(world, "both", "data", "more"),
        submit(world, "own", new={"storage": "1Gi", "storage_class": storage.disks}),
    ]

    def provisioned(done: Callable[[], bool]) -> Callable[[], bool]:
        def check() -> bool:
            storage.provision()
            return done()

        return check

    world.reconcile_until(provisioned(lambda: all(map(running, jobs))))
    assert running(jobs[0]) == [storage.nodes[1]], "the other node attaches one volume only"
    nodes = {name: one["metadata"]["annotations"][SELECTED] for name, one in storage.claims().items()}
    own = f"job-{jobs[1].uid.hex}-new"
    assert nodes == {"data": storage.nodes[1], "more": storage.nodes[1], own: running(jobs[1])[0]}
    for job in jobs:
        end(world, job)
    storage.plane.request("DELETE", f"{CSI_NODES}/{storage.nodes[0]}")


def test_volumes_are_provisioned_where_their_driver_has_room(world: World, storage: Storage) -> None:
    driver = {"metadata": {"name": PROVISIONER}, "spec": {"storageCapacity": True}}
    storage.plane.request("POST", CSI_DRIVERS, driver)
    new = {"storage": "2Gi", "storage_class": storage.disks}
    job = submit(world, "own", new=new)
    world.reconcile_until(lambda: "no room for a new volume" in waiting(job))
    for node, size in zip(storage.nodes, ("1Gi", "3Gi"), strict=True):
        storage.report_room(node, size)
    world.reconcile_until(lambda: bool(storage.claims()))
    (claim,) = storage.claims().values()
    assert claim["metadata"]["annotations"][SELECTED] == storage.nodes[1]
    end(world, job)
    storage.plane.request("DELETE", f"{CSI_DRIVERS}/{PROVISIONER}")


@pytest.mark.thorough
def test_pod_moves_to_the_volume_that_is_made_elsewhere(world: World, storage: Storage) -> None:
    """A class that binds at once does not ask where the pod runs."""
    job = submit(world, "own", new={"storage": "1Gi", "storage_class": storage.at_once}, replicas=2)
    own = f"job-{job.uid.hex}-new"

    def placed() -> set[str]:
        return set(Pod.objects.filter(job=job).exclude(node="").values_list("node", flat=True))

    world.reconcile_until(lambda: own in storage.claims())
    (other, *_rest) = [one for one in storage.nodes if one not in placed()] or storage.nodes
    meta = {field: storage.claims()[own]["metadata"][field] for field in ("namespace", "name", "uid")}
    reference = {"kind": "PersistentVolumeClaim", **meta}
    driven = {"driver": PROVISIONER, "volumeHandle": "h"}
    storage.add_volume("own", other, storage.at_once, csi=driven, claimRef=reference)
    world.reconcile_until(lambda: running(job) == [other, other])
    end(world, job)


@pytest.mark.thorough
def test_cluster_reads_no_volumes_for_jobs_without_claims(world: World, storage: Storage) -> None:
    job = services.submit(spec=spec("one", cpu="1"), tenant=world.tenant, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: bool(running(job)))
    assert not ClusterObject.objects.exists()
