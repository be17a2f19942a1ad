"""The real Volcano and Hekla decide the same Volcano Jobs on the same nodes of a real API server, and place them alike.

Volcano decides first, and its jobs are deleted. Hekla gets the same manifests by REST, and the same scheduler
configuration with `compatibility: volcano` (decision 0010).
"""

import copy
import json
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from rest_framework.test import APIClient
from tests.controller.conftest import World, describe
from tests.controller.test_hypernode_objects import PLACE as HYPERNODES
from tests.controller.test_numa_objects import CPUS
from tests.controller.test_numa_objects import PLACE as NUMA_TOPOLOGIES
from tests.controller.volcano_scenarios import NOTHING_FITS, SCENARIOS, Machine, Scenario, Volume
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.volcano.processes import Volcano

from hekla.apps.accounts import services as accounts
from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.domain.phases import JobPhase
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock

Object = dict[str, Any]
Placement = list[tuple[str, list[str]]]
"""The kind of each machine with the jobs of its pods, sorted: machines of a kind and pods of a job are alike."""

_JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs"
_PODS = "/api/v1/namespaces/{}/pods"
_CLAIMS_API = "/apis/resource.k8s.io/v1"
_VOLUMES, _STORAGE_API = "/api/v1/persistentvolumes", "/apis/storage.k8s.io/v1"
_SETTLED_SECONDS = 4.0
"""Volcano decides five times a second; what did not change for so long is its decision."""
_NOTICED_SECONDS = 15.0
_USUAL = ("spread over zones", "CPUs of one cell", "a claim that pods share")
"""Those that run by default."""


class Stage:
    """The nodes and objects of a scenario on the API server."""

    def __init__(self, plane: ControlPlane, namespace: str, scenario: Scenario) -> None:
        self.plane, self.namespace, self.scenario = plane, namespace, scenario
        self.labels = {"hekla.dev/test": namespace}
        self.names = [self._add(machine) for machine in scenario.machines]
        for name, (tier, members) in scenario.racks.items():
            spec = {"tier": tier, "members": [self._member(one) for one in members]}
            self._post(HYPERNODES, "topology.volcano.sh/v1alpha1", "HyperNode", name, spec)
        if scenario.uses_devices:
            selectors = [{"cel": {"expression": "device.attributes['card.test'].model == 'big'"}}]
            self._post_device_object("deviceclasses", "DeviceClass", "card.test", {"selectors": selectors})
        for name, claim in scenario.templates.items():
            self._post_device_object(
                self._own("resourceclaimtemplates"), "ResourceClaimTemplate", name, {"spec": {"devices": claim}}
            )
        for name, claim in scenario.claims.items():
            self._post_device_object(self._own("resourceclaims"), "ResourceClaim", name, {"devices": claim})
        if scenario.volume_claims:
            body = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "Immediate"}
            self._post_whole(f"{_STORAGE_API}/storageclasses", self._class, body)
        self._volumes: list[str] = []
        self._rounds = 0
        self.add_volumes()

    def add_volumes(self) -> None:
        """Add the volumes and claims of the scenario; in a later round instead of those that were bound."""
        for name in self.scenario.volume_claims if self._rounds else ():
            self.plane.request("DELETE", f"{self._claims}/{name}")
        self._remove_volumes()
        self._rounds += 1
        self._volumes = [self._add_volume(number, volume) for number, volume in enumerate(self.scenario.volumes)]
        self.plane.wait_until(lambda: not self.plane.request("GET", self._claims)["items"])
        for name in self.scenario.volume_claims:
            resources = {"requests": {"storage": "1Gi"}}
            spec = {"storageClassName": self._class, "accessModes": ["ReadWriteOnce"], "resources": resources}
            self._post_whole(self._claims, name, {"spec": spec})
        self.plane.wait_until(lambda: self._bound() == len(self.scenario.volumes))

    def _add_volume(self, number: int, volume: Volume) -> str:
        name = f"{self.namespace}-{self._rounds}-{number}"
        wanted = [{"key": key, "operator": "In", "values": [value]} for key, value in volume.on.items()]
        reach = {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": wanted}]}}} if wanted else {}
        driven = {"csi": {"driver": "disk.test", "volumeHandle": name}}
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": self._class,
            **reach,
            **(driven if volume.csi else {"hostPath": {"path": "/mnt"}}),
        }
        self._post_whole(_VOLUMES, name, {"spec": spec}, volume.labels)
        return name

    def _remove_volumes(self) -> None:
        for name in self._volumes:
            self.plane.request("DELETE", f"{_VOLUMES}/{name}")

    def _bound(self) -> int:
        found = self.plane.request("GET", self._claims)["items"]
        return sum(one["status"].get("phase") == "Bound" for one in found)

    @property
    def _claims(self) -> str:
        return f"/api/v1/{self._own('persistentvolumeclaims')}"

    @property
    def _class(self) -> str:
        return f"{self.namespace}-at-once"

    def _post_whole(self, place: str, name: str, body: Object, labels: Mapping[str, str] | None = None) -> None:
        self.plane.request("POST", place, {"metadata": {"name": name, "labels": dict(labels or {})}, **body})

    def has_released_claims(self) -> bool:
        """Whether no claim holds devices."""
        if not self.scenario.uses_devices:
            return True
        found = self.plane.request("GET", f"{_CLAIMS_API}/{self._own('resourceclaims')}")["items"]
        return all(not one.get("status", {}).get("allocation") for one in found)

    def remove(self) -> None:
        if self.scenario.uses_devices:
            self.plane.request("DELETE", f"{_CLAIMS_API}/deviceclasses/card.test")
        for name, machine in zip(self.names, self.scenario.machines, strict=True):
            if machine.devices:
                self.plane.request("DELETE", f"{_CLAIMS_API}/resourceslices/{name}")
        for name in self.scenario.racks:
            self.plane.request("DELETE", f"{HYPERNODES}/{name}")
        self._remove_volumes()
        if self.scenario.volume_claims:
            self.plane.request("DELETE", f"{_STORAGE_API}/storageclasses/{self._class}")
        for name, machine in zip(self.names, self.scenario.machines, strict=True):
            if machine.attaches is not None:
                self.plane.request("DELETE", f"{_STORAGE_API}/csinodes/{name}")
        for name, machine in zip(self.names, self.scenario.machines, strict=True):
            if machine.free_cpus:
                self.plane.request("DELETE", f"{NUMA_TOPOLOGIES}/{name}")
        self.plane.remove_nodes(self.names)

    def confined(self, manifest: Object) -> Object:
        """The job, whose pods may use the nodes of this scenario only: the API server has others."""
        confined = copy.deepcopy(manifest)
        for task in confined["spec"]["tasks"]:
            pod = task["template"]["spec"]
            pod["nodeSelector"] = {**pod.get("nodeSelector", {}), **self.labels}
        return confined

    def placement(self, held: dict[str, str]) -> Placement:
        """`held`: the node of each pod; a pod's name begins with that of its job."""
        found = []
        for name, machine in zip(self.names, self.scenario.machines, strict=True):
            found.append((machine.kind, sorted(pod.split("-")[0] for pod, node in held.items() if node == name)))
        return sorted(found)

    def _add(self, machine: Machine) -> str:
        size = {"cpu": machine.cpu, "memory": "8Gi", "pods": machine.pods, **machine.more}
        (name,) = self.plane.add_nodes(1, allocatable=size, labels={**self.labels, **machine.labels})
        if machine.taints or machine.cordoned:
            change = {"spec": {"taints": list(machine.taints), "unschedulable": machine.cordoned}}
            self.plane.request("PATCH", f"/api/v1/nodes/{name}", change, content_type="application/merge-patch+json")
        if machine.free_cpus:
            numares = {"cpu": {"allocatable": machine.free_cpus, "capacity": 4}}
            policies = {"CPUManagerPolicy": "static", "TopologyManagerPolicy": machine.topology_policy}
            spec = {"cpuDetail": CPUS, "policies": policies, "numares": numares}
            self._post(NUMA_TOPOLOGIES, "nodeinfo.volcano.sh/v1alpha1", "Numatopology", name, spec)
        if machine.attaches is not None:
            driver = {
                "name": "disk.test",
                "nodeID": name,
                "topologyKeys": [],
                "allocatable": {"count": machine.attaches},
            }
            self._post_whole(f"{_STORAGE_API}/csinodes", name, {"spec": {"drivers": [driver]}})
        if machine.devices:
            pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": "card.test", "nodeName": name, "pool": pool, "devices": list(machine.devices)}
            self._post_device_object("resourceslices", "ResourceSlice", name, spec)
        return name

    def _own(self, kind: str) -> str:
        return f"namespaces/{self.namespace}/{kind}"

    def _post_device_object(self, place: str, kind: str, name: str, spec: Object) -> None:
        self._post(f"{_CLAIMS_API}/{place}", "resource.k8s.io/v1", kind, name, spec)

    def _member(self, one: int | str) -> Object:
        kind, name = ("Node", self.names[one]) if isinstance(one, int) else ("HyperNode", one)
        return {"type": kind, "selector": {"exactMatch": {"name": name}}}

    def _post(self, place: str, version: str, kind: str, name: str, spec: Object) -> None:
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        self.plane.request("POST", place, body)


@pytest.fixture
def stage_of(volcano: Volcano, topology_kinds: None, volcano_namespace: str) -> Iterator[Callable[[Scenario], Stage]]:
    stages: list[Stage] = []

    def build(scenario: Scenario) -> Stage:
        stages.append(Stage(volcano.plane, volcano_namespace, scenario))
        return stages[-1]

    yield build
    for stage in stages:
        stage.remove()


def settled(read: Callable[[], Placement], act: Callable[[], None]) -> Placement:
    """What is read when it has not changed for a while."""
    last, since = read(), time.monotonic()
    while time.monotonic() - since < _SETTLED_SECONDS:
        act()
        if (found := read()) != last:
            last, since = found, time.monotonic()
    return last


def decided_by_volcano(volcano: Volcano, stage: Stage) -> list[Placement]:
    """The placement after each wave. The jobs are deleted afterwards."""
    plane, jobs, pods = volcano.plane, _JOBS.format(stage.namespace), _PODS.format(stage.namespace)

    def read() -> Placement:
        found = plane.request("GET", pods)["items"]
        return stage.placement({one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in found})

    volcano.schedule_by(stage.scenario.policy)
    placements = []
    for wave in stage.scenario.waves:
        for manifest in wave:
            plane.request("POST", jobs, stage.confined(manifest))
        _wait_for_volcano(plane, jobs, pods)
        placements.append(settled(read, lambda: time.sleep(0.2)))
    for one in plane.request("GET", jobs)["items"]:
        plane.request("DELETE", f"{jobs}/{one['metadata']['name']}")
    plane.wait_until(lambda: not plane.request("GET", pods)["items"] and stage.has_released_claims(), 90.0)
    return placements


def _wait_for_volcano(plane: ControlPlane, jobs: str, pods: str) -> None:
    """Wait until every job has pods and each of them a node or a condition: then Volcano has looked at all of them.

    A job that is not admitted gets no pods, so the wait ends in any case.
    """
    give_up_at = time.monotonic() + _NOTICED_SECONDS
    while time.monotonic() < give_up_at:
        found = plane.request("GET", pods)["items"]
        wanted = {one["metadata"]["name"] for one in plane.request("GET", jobs)["items"]}
        decided = all(one["spec"].get("nodeName") or one["status"].get("conditions") for one in found)
        if decided and wanted <= {one["metadata"]["labels"].get("volcano.sh/job-name") for one in found}:
            return
        time.sleep(0.2)


def decided_by_hekla(world: World, stage: Stage) -> list[Placement]:
    """The placement after each wave. The jobs are ended afterwards."""
    token = accounts.create_token(world.alice, name="test", lifetime=timedelta(hours=1), now=clock.now())
    client = APIClient(HTTP_AUTHORIZATION=f"Bearer {token}")
    text = f"{stage.scenario.policy}compatibility: volcano\n"
    clusters.set_policy(world.cluster, text=text, note="", by=world.alice, actor=PLATFORM, now=clock.now())

    def read() -> Placement:
        found = Pod.objects.exclude(node="").select_related("job")
        return stage.placement({f"{pod.job.name}-{pod.index}": pod.node for pod in found})

    def act() -> None:
        backend_of(world.cluster).wait(0.2)
        controllers.reconcile(world.cluster)

    placements = []
    for wave in stage.scenario.waves:
        for manifest in wave:
            text = yaml.safe_dump(stage.confined(manifest))
            answer = client.post("/api/v1/jobs", text, content_type="application/yaml")
            assert answer.status_code == 201, answer.content
        placements.append(settled(read, act))
    for job in Job.objects.all():
        assert job.phase in (JobPhase.PENDING, JobPhase.RUNNING), describe()
        services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    controllers.reconcile(world.cluster)
    return placements


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in _USUAL else pytest.mark.thorough) for name in SCENARIOS]
)
def test_both_place_the_jobs_alike(
    name: str,
    volcano: Volcano,
    volcano_namespace: str,
    claims_namespace: str,
    volumes_namespace: str,
    stage_of: Callable[[Scenario], Stage],
    transactional_db: None,
    settings: Any,
    tmp_path: Path,
) -> None:
    stage = stage_of(SCENARIOS[name])
    by_volcano = decided_by_volcano(volcano, stage)
    if stage.scenario.volume_claims:
        stage.add_volumes()
    settings.HEKLA_HOME = tmp_path
    controllers.reset()
    (tmp_path / "kubeconfigs").mkdir()
    kubeconfig = volcano.plane.kubeconfig(volcano.plane.user_token)
    (tmp_path / "kubeconfigs" / "test").write_text(json.dumps(kubeconfig))
    config = {
        "kubeconfig": "test",
        "namespace": volcano_namespace,
        "node_labels": stage.labels,
        "host_ports": ["8080"],
        "devices": True,
        "storage": True,
        "claims": [*stage.scenario.volume_claims, "none"],
        "resource_claims": [*stage.scenario.claims, *stage.scenario.templates],
    }
    world = World.found("kubernetes", config)
    try:
        assert decided_by_hekla(world, stage) == by_volcano
    finally:
        backend_of(world.cluster).close()
        controllers.reset()
    is_placed = any(pods for placement in by_volcano for _kind, pods in placement)
    assert is_placed == (name not in NOTHING_FITS)
