"""The nodes and objects of scenarios that Volcano and Hekla decide in turn, on a real API server."""

import copy
from contextlib import ExitStack
from typing import Any

from tests.controller.external_pods import create_pod, create_pod_group
from tests.controller.test_hypernode_objects import PLACE as HYPERNODES
from tests.controller.test_numa_objects import CPUS
from tests.controller.test_numa_objects import PLACE as NUMA_TOPOLOGIES
from tests.controller.volcano_scenarios import Group, Machine, Scenario, Volume
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.metrics_server import metrics_server

Object = dict[str, Any]
Placement = list[tuple[str, list[str]]]
"""The kind of each machine with the jobs of its pods, sorted: machines of a kind and pods of a job are alike."""

_CLAIMS_API = "/apis/resource.k8s.io/v1"
_VOLUMES, _STORAGE_API = "/api/v1/persistentvolumes", "/apis/storage.k8s.io/v1"
_PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_TASK_LABELS = {"volcano": "volcano.sh/task-spec", "hekla": "hekla.dev/task"}
"""The labels of pods with the name of their task. In a shared namespace, Hekla's pods carry no labels of tasks."""
_QUERIES = 2
"""Volcano asks for the CPU and the memory of each node."""
_QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"


class Stage:
    """The nodes and objects of a scenario on the API server."""

    def __init__(self, plane: ControlPlane, namespace: str, scenario: Scenario) -> None:
        self.plane, self.namespace, self.scenario = plane, namespace, scenario
        self.labels = {"hekla.dev/test": namespace}
        self._closing = ExitStack()
        self.metrics = self._closing.enter_context(metrics_server()) if scenario.is_measured else None
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
            mode = "WaitForFirstConsumer" if scenario.waits_for_consumer else "Immediate"
            body = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": mode}
            self._post_whole(f"{_STORAGE_API}/storageclasses", self._class, body)
        for name, least in scenario.budgets.items():
            for whose, label in _TASK_LABELS.items():
                spec = {"minAvailable": least, "selector": {"matchLabels": {label: name}}}
                self._post_whole(self._budgets, f"{name}-{whose}", {"spec": spec})
        for name, value in scenario.priorities.items():
            self._post_whole(_PRIORITIES, name, {"value": value})
        for name, queue in scenario.queues.items():
            self._post(_QUEUES, "scheduling.volcano.sh/v1beta1", "Queue", name, {**queue})
        for name in scenario.queues:
            self.plane.wait_until(lambda at=f"{_QUEUES}/{name}": self._is_open(at))  # type: ignore[misc]
        self._volumes: list[str] = []
        self._rounds = 0
        self.add_volumes()
        self._closing.callback(self._remove_volumes)

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
            self.plane.request("POST", self._claims, {"metadata": {"name": name}, "spec": spec})
        bound = 0 if self.scenario.waits_for_consumer else len(self.scenario.volumes)
        self.plane.wait_until(lambda: self._bound() == bound)

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
        self.plane.request("POST", _VOLUMES, {"metadata": {"name": name, "labels": {**volume.labels}}, "spec": spec})
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
        return f"{self.namespace}-volumes"

    @property
    def _budgets(self) -> str:
        return f"/apis/policy/v1/{self._own('poddisruptionbudgets')}"

    def _is_open(self, queue: str) -> bool:
        return bool(self.plane.request("GET", queue).get("status", {}).get("state") == "Open")

    def _post_whole(self, place: str, name: str, body: Object) -> None:
        self.plane.request("POST", place, {"metadata": {"name": name}, **body})
        self._closing.callback(self.plane.request, "DELETE", f"{place}/{name}")

    def has_released_claims(self) -> bool:
        """Whether no claim holds devices."""
        if not self.scenario.uses_devices:
            return True
        found = self.plane.request("GET", f"{_CLAIMS_API}/{self._own('resourceclaims')}")["items"]
        return all(not one.get("status", {}).get("allocation") for one in found)

    def add_group(self, group: Group, scheduler: str) -> None:
        """Create external pods, and their PodGroup unless it exists, for this scheduler."""
        if group.spec is not None:
            create_pod_group(self.plane, self.namespace, group.name, **group.spec)
        for body in group.pods:
            spec = {**body["spec"], "schedulerName": scheduler, "nodeSelector": self.labels}
            create_pod(self.plane, self.namespace, {**body, "spec": spec})

    def remove_groups(self) -> None:
        """Delete all external pods and their PodGroups."""
        if self.scenario.has_external_pods:
            for kind in ("/api/v1/namespaces/{}/pods", "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups"):
                self.plane.request("DELETE", f"{kind.format(self.namespace)}?gracePeriodSeconds=0")

    def policy_of_volcano(self) -> str:
        """The policy of the scenario, with the source of measurements as Volcano reads it."""
        if self.metrics is None:
            return self.scenario.policy
        return f"{self.scenario.policy}metrics: {{type: prometheus, address: '{self.metrics.url}', interval: 1s}}\n"

    def wait_until_measured(self) -> None:
        """Wait until Volcano has all measurements: it has begun to ask again for each node."""
        if self.metrics is not None:
            requests = self.metrics.requests
            self.plane.wait_until(lambda: all(sum(name in one for one in requests) > _QUERIES for name in self.names))

    def remove(self) -> None:
        """Delete all of it, the last first."""
        self._closing.close()

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
        self._closing.callback(self.plane.remove_nodes, [name])
        if machine.usage is not None and self.metrics is not None:
            metrics = ("node_cpu_seconds_total", "node_memory_MemAvailable_bytes")
            for metric, used in zip(metrics, machine.usage, strict=True):
                self.metrics.prometheus.setdefault(metric, {})[name] = used
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
        self._post_whole(place, name, {"apiVersion": version, "kind": kind, "spec": spec})
