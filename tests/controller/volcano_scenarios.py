"""Small clusters and jobs whose placement has one right answer, apart from machines and pods that are alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]

BASIC = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""
PACKING = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: binpack, arguments: {binpack.weight: 10}}]
"""
RACKS = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}, {name: network-topology-aware}]
"""
CELLS = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: numa-aware}]
"""
DEVICES = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins:
  - {name: predicates, arguments: {predicate.DynamicResourceAllocationEnable: true}}
  - {name: proportion}
  - {name: nodeorder}
"""
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


@dataclass(frozen=True)
class Machine:
    """A node. Machines of the same `kind` may stand for one another."""

    kind: str
    cpu: str = "4"
    pods: str = "20"
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Object] = ()
    more: Mapping[str, str] = field(default_factory=dict)
    cordoned: bool = False
    free_cpus: str = ""
    """If not empty: its NUMA cells 0-1 and 2-3, of which these CPUs are free."""
    topology_policy: str = "single-numa-node"
    devices: Sequence[Object] = ()
    """The devices of a ResourceSlice of its own."""
    attaches: int | None = None
    """If not None: how many volumes of the driver `disk.test` it can attach, by a CSINode."""
    usage: tuple[float, float] | None = None
    """Per cent of its CPU and memory that are used, as Prometheus measures."""


@dataclass(frozen=True)
class Volume:
    """A volume of a gibibyte. `on`: labels of the nodes that reach it. `csi`: the driver `disk.test` attaches it."""

    on: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    csi: bool = False


@dataclass(frozen=True)
class Group:
    """External pods of a PodGroup. `spec`: that of the PodGroup; None if it exists already."""

    name: str
    pods: Sequence[Object]
    spec: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Scenario:
    """`waves`: jobs, or else only external pods; the next ones are submitted when the ones before are decided."""

    machines: Sequence[Machine]
    waves: Sequence[Sequence[Object | Group]]
    policy: str = BASIC
    racks: Mapping[str, tuple[int, Sequence[int | str]]] = field(default_factory=dict)
    """HyperNodes: tier, and members: places in `machines` or names of HyperNodes."""
    claims: Mapping[str, Object] = field(default_factory=dict)
    """ResourceClaims, by name, and what they ask for."""
    templates: Mapping[str, Object] = field(default_factory=dict)
    volumes: Sequence[Volume] = ()
    volume_claims: Sequence[str] = ()
    """Their names. Their class binds them to the volumes at once, unless it `waits_for_consumer`."""
    waits_for_consumer: bool = False
    budgets: Mapping[str, int] = field(default_factory=dict)
    """Disruption budgets: how many pods of the tasks with this name stay available."""
    priorities: Mapping[str, int] = field(default_factory=dict)
    queues: Mapping[str, Object] = field(default_factory=dict)
    """Queues beside `default`, by name: fields of Volcano's Queue."""

    @property
    def uses_devices(self) -> bool:
        return any(machine.devices for machine in self.machines)

    @property
    def is_measured(self) -> bool:
        return any(machine.usage for machine in self.machines)

    @property
    def has_external_pods(self) -> bool:
        return any(isinstance(one, Group) for wave in self.waves for one in wave)


def job(name: str, replicas: int = 1, *, least: int | None = None, cpu: str = "1", **more: Any) -> Object:
    """A Volcano Job with one task. `least`: its minAvailable, by default all pods. The rest: `task`, the name of the
    task, and fields of the task or of its pods.
    """
    above = {key: more.pop(key) for key in ("networkTopology", "priorityClassName", "queue") if key in more}
    task = {key: more.pop(key) for key in ("topologyPolicy",) if key in more}
    task_name = more.pop("task", "main")
    requests = {"cpu": cpu, "memory": "1Gi", **more.pop("requests", {})}
    container = {
        "name": "main",
        "image": "x",
        "command": ["x"],
        "resources": {"requests": requests, "limits": requests},
        **more.pop("container", {}),
    }
    template = {"metadata": {"labels": more.pop("labels", {})}, "spec": {"containers": [container], **more}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "volcano",
            "minAvailable": replicas if least is None else least,
            "queue": "default",
            **above,
            "tasks": [{"name": task_name, "replicas": replicas, **task, "template": template}],
        },
    }


def taint(key: str, effect: str = "NoSchedule", value: str = "yes") -> Object:
    return {"key": key, "value": value, "effect": effect}


def wants(key: str, operator: str, *values: str) -> Object:
    found: Object = {"key": key, "operator": operator}
    return {"matchExpressions": [found | ({"values": list(values)} if values else {})]}


def on_nodes(*terms: Object) -> Object:
    needed = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": needed}}


def rather_on(**weights: Object) -> Object:
    """Preferred nodes: w80=term."""
    terms = [{"weight": int(weight[1:]), "preference": term} for weight, term in weights.items()]
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}}


def near(kind: str, app: str, key: str) -> Object:
    """`kind`: podAffinity or podAntiAffinity, to the pods of this app, in the same `key`."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def rather_near(kind: str, app: str, key: str) -> Object:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    weighted = [{"weight": 100, "podAffinityTerm": term}]
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}}


def spread(app: str, key: str, skew: int = 1, unsatisfiable: str = "DoNotSchedule") -> Object:
    selector = {"matchLabels": {"app": app}}
    constraint = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": unsatisfiable, "labelSelector": selector}
    return {"topologySpreadConstraints": [constraint]}


def zoned(*zones: str, cpu: str = "4") -> list[Machine]:
    return [Machine(f"zone-{zone}", cpu, labels={ZONE: zone}) for zone in zones]


def device(name: str, model: str = "big", memory: str = "80Gi", **attributes: str) -> Object:
    named = {key: {"string": value} for key, value in {"model": model, **attributes}.items()}
    return {"name": name, "attributes": named, "capacity": {"memory": {"value": memory}}}


def wanting(count: int = 1, expression: str = "", **more: Any) -> Object:
    """A claim for devices of the class `card.test`. The rest: other fields of the request."""
    selectors = {"selectors": [{"cel": {"expression": expression}}]} if expression else {}
    amount = {} if "allocationMode" in more else {"count": count}
    return {"requests": [{"name": "r", "exactly": {"deviceClassName": "card.test", **amount, **selectors, **more}}]}


def claiming(*templates: str, shared: str = "") -> Object:
    """Fields of a pod that claims devices: by templates, or those of an existing claim."""
    named = [{"name": f"c{at}", "resourceClaimTemplateName": one} for at, one in enumerate(templates)]
    return {"resourceClaims": [*named, *([{"name": "shared", "resourceClaimName": shared}] if shared else [])]}


def mounting(*claims: str) -> Object:
    """Fields of a pod that mounts volume claims."""
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
    mounts = [{"name": one, "mountPath": f"/{one}"} for one in claims]
    return {"volumes": volumes, "container": {"volumeMounts": mounts}}


def cells(*free: str, policy: str = "single-numa-node") -> list[Machine]:
    return [Machine(f"free-{one}", free_cpus=one, topology_policy=policy) for one in free]


TWO_RACKS = {"rack-a": (1, (0, 1)), "rack-b": (1, (2, 3)), "hall": (2, ("rack-a", "rack-b"))}
_SMALL_AND_BIG = {"small": (1, (0, 1)), "big": (1, (2, 3, 4)), "hall": (2, ("small", "big"))}
_DRIVER = "card.test"
_THREE = [device("d-0"), device("d-1"), device("d-2")]
_TOLERATES = {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}

SCENARIOS: dict[str, Scenario] = {
    "a taint keeps pods away": Scenario(
        [Machine("plain"), Machine("tainted", taints=[taint("gpu")])], [[job("one", 2, least=1, cpu="3")]]
    ),
    "a toleration lets pods in": Scenario(
        [Machine("plain"), Machine("tainted", taints=[taint("gpu")])],
        [[job("one", 2, cpu="3", tolerations=[_TOLERATES])]],
    ),
    "a toleration of another value does not": Scenario(
        [Machine("tainted", taints=[taint("gpu")])],
        [[job("one", cpu="1", tolerations=[{**_TOLERATES, "value": "no"}])]],
    ),
    "a toleration without a key tolerates all": Scenario(
        [Machine("tainted", taints=[taint("gpu"), taint("down", "NoExecute")])],
        [[job("one", tolerations=[{"operator": "Exists"}])], [job("two")]],
    ),
    "PreferNoSchedule is a preference": Scenario(
        [Machine("plain"), Machine("avoided", taints=[taint("old", "PreferNoSchedule")])],
        [[job("one", cpu="3")], [job("two", cpu="3")], [job("three", cpu="3")]],
    ),
    "a cordoned node gets nothing": Scenario(
        [Machine("plain"), Machine("cordoned", cordoned=True)], [[job("one", 2, least=1, cpu="3")]]
    ),
    "a node selector": Scenario(
        [Machine("ssd", labels={"disk": "ssd"}), Machine("plain")],
        [[job("one", 2, least=1, cpu="3", nodeSelector={"disk": "ssd"})]],
    ),
    "required node affinity": Scenario(
        [Machine(f"g{n}", labels={"generation": str(n)}) for n in (1, 2, 3)],
        [[job("one", 3, least=1, cpu="3", **on_nodes(wants("generation", "Gt", "1")))]],
    ),
    "terms of node affinity are alternatives": Scenario(
        [Machine(f"g{n}", labels={"generation": str(n)}) for n in (1, 2, 3)],
        [
            [
                job(
                    "one",
                    3,
                    least=1,
                    cpu="3",
                    **on_nodes(wants("generation", "In", "1"), wants("generation", "NotIn", "1", "2")),
                )
            ]
        ],
    ),
    "preferred node affinity": Scenario(
        [Machine(f"g{n}", labels={"generation": str(n)}) for n in (1, 2, 3)],
        [
            [job("one", cpu="3", **rather_on(w100=wants("generation", "In", "2")))],
            [job("two", cpu="3", **rather_on(w100=wants("generation", "In", "2"), w60=wants("generation", "In", "3")))],
        ],
    ),
    "pod affinity to another job": Scenario(
        zoned("a", "a", "b", "b"),
        [
            [job("first", cpu="4", labels={"app": "db"}, nodeSelector={ZONE: "b"})],
            [job("second", 2, least=1, cpu="3", **near("podAffinity", "db", ZONE))],
        ],
    ),
    "pod anti-affinity within a job": Scenario(
        [Machine("plain"), Machine("plain")],
        [[job("one", 3, least=2, labels={"app": "web"}, **near("podAntiAffinity", "web", HOST))]],
    ),
    "pod anti-affinity keeps later jobs away": Scenario(
        zoned("a", "b"),
        [
            [job("first", labels={"app": "x"}, nodeSelector={ZONE: "a"}, **near("podAntiAffinity", "y", ZONE))],
            [job("second", 2, cpu="2", labels={"app": "y"})],
        ],
    ),
    "preferred pod affinity": Scenario(
        zoned("a", "b", "c"),
        [
            [job("first", labels={"app": "db"}, nodeSelector={ZONE: "b"})],
            [job("second", **rather_near("podAffinity", "db", ZONE))],
        ],
    ),
    "spread over zones": Scenario(
        zoned("a", "a", "b", "b"), [[job("one", 4, least=1, labels={"app": "web"}, **spread("web", ZONE))]]
    ),
    "a gang to spread, and a node that refused one of its pods": Scenario(
        zoned("a", "a", "b", "b"), [[job("one", 4, labels={"app": "web"}, **spread("web", ZONE))]]
    ),
    "spread that a full zone ends": Scenario(
        [*zoned("a"), *zoned("b", cpu="1")],
        [[job("one", 4, least=1, labels={"app": "web"}, **spread("web", ZONE))]],
    ),
    "a gang that does not fit gets nothing": Scenario(
        [Machine("plain")], [[job("large", 5)], [job("small", 3, least=3)], [job("part", 3, least=1)]]
    ),
    "a port of the node is used once": Scenario(
        [Machine("plain"), Machine("plain")],
        [[job("one", 3, least=1, container={"ports": [{"containerPort": 8080, "hostPort": 8080}]})]],
    ),
    "the most pods of a node": Scenario(
        [Machine("few", pods="2"), Machine("plain", cpu="1")], [[job("one", 4, least=1, cpu="500m")]]
    ),
    "an extended resource": Scenario(
        [Machine("cards", more={"nvidia.com/gpu": "2"}), Machine("plain")],
        [[job("one", 3, least=1, requests={"nvidia.com/gpu": "1"})]],
    ),
    "packing": Scenario(
        [Machine("used", labels={"use": "first"}), Machine("empty"), Machine("small", cpu="2")],
        [[job("first", cpu="2", nodeSelector={"use": "first"})], [job("second", 2, cpu="1")]],
        PACKING,
    ),
    "a rack for all pods": Scenario(
        [Machine("rack-a", labels={"use": "first"}), Machine("rack-a"), Machine("rack-b"), Machine("rack-b")],
        [
            [job("taken", cpu="4", nodeSelector={"use": "first"})],
            [job("pair", 2, cpu="4", networkTopology={"mode": "hard", "highestTierAllowed": 1})],
            [job("next", 2, cpu="4", networkTopology={"mode": "hard", "highestTierAllowed": 1})],
        ],
        RACKS,
        TWO_RACKS,
    ),
    "a hall where no rack is large enough": Scenario(
        [Machine("any")] * 4,
        [
            [job("rack", 3, cpu="4", networkTopology={"mode": "hard", "highestTierAllowed": 1})],
            [job("hall", 3, cpu="4", networkTopology={"mode": "hard", "highestTierAllowed": 2})],
        ],
        RACKS,
        TWO_RACKS,
    ),
    "only the larger rack": Scenario(
        [*[Machine("small")] * 2, *[Machine("big")] * 3],
        [[job("one", 3, cpu="4", networkTopology={"mode": "hard", "highestTierAllowed": 1})]],
        RACKS,
        _SMALL_AND_BIG,
    ),
    "CPUs of one cell": Scenario(
        cells("0,2", "0-1"), [[job("one", cpu="2", topologyPolicy="single-numa-node")]], CELLS
    ),
    "no cell has enough CPUs": Scenario(
        cells("0,2", "1,3"), [[job("one", cpu="2", topologyPolicy="single-numa-node")]], CELLS
    ),
    "CPUs of the fewest cells": Scenario(
        cells("0,2", "0-3", policy="restricted"), [[job("one", cpu="2", topologyPolicy="restricted")]], CELLS
    ),
    "another policy than the node's": Scenario(
        cells("0-3", policy="restricted"), [[job("one", cpu="2", topologyPolicy="single-numa-node")]], CELLS
    ),
    "devices of a class": Scenario(
        [Machine("other", devices=[device("d-0", "small")]), Machine("cards", devices=[device("d-0"), device("d-1")])],
        [[job("one", 3, least=1, **claiming("one"))]],
        DEVICES,
        templates={"one": wanting()},
    ),
    "a number of devices": Scenario(
        [Machine("two", devices=[device("d-0"), device("d-1")]), Machine("three", devices=_THREE)],
        [[job("one", **claiming("three"))], [job("two", **claiming("two"))], [job("three", **claiming("two"))]],
        DEVICES,
        templates={"three": wanting(3), "two": wanting(2)},
    ),
    "devices by attribute and capacity": Scenario(
        [Machine("less", devices=[device("d-0", memory="40Gi")]), Machine("more", devices=[device("d-0")])],
        [[job("one", 2, least=1, **claiming("large"))]],
        DEVICES,
        templates={"large": wanting(1, f"device.capacity['{_DRIVER}'].memory.isGreaterThan(quantity('60Gi'))")},
    ),
    "a claim that pods share": Scenario(
        [Machine("cards", devices=[device("d-0"), device("d-1")]), Machine("plain")],
        [[job("some", 3, least=1, **claiming(shared="held"))], [job("next", 2, least=1, **claiming("one"))]],
        DEVICES,
        claims={"held": wanting()},
        templates={"one": wanting()},
    ),
    "a gang that shares a claim without devices yet": Scenario(
        [Machine("cards", devices=[device("d-0")])],
        [[job("gang", 2, **claiming(shared="held"))]],
        DEVICES,
        claims={"held": wanting()},
    ),
    "no device is left": Scenario(
        [Machine("cards", devices=[device("d-0")])],
        [[job("first", **claiming("one"))], [job("second", **claiming("one"))], [job("third")]],
        DEVICES,
        templates={"one": wanting()},
    ),
    "a gang with too few devices gets none": Scenario(
        [Machine("cards", devices=_THREE)],
        [[job("four", 4, cpu="500m", **claiming("one"))], [job("three", 3, cpu="500m", **claiming("one"))]],
        DEVICES,
        templates={"one": wanting()},
    ),
    "all devices of a node": Scenario(
        [Machine("three", devices=_THREE), Machine("plain")],
        [[job("one", **claiming("all"))], [job("two", **claiming("one"))]],
        DEVICES,
        templates={"all": wanting(allocationMode="All"), "one": wanting()},
    ),
    "devices with equal attributes": Scenario(
        [
            Machine("apart", devices=[device("d-0", rack="a"), device("d-1", rack="b")]),
            Machine("same", devices=[device("d-0", rack="a"), device("d-1", rack="b"), device("d-2", rack="b")]),
        ],
        [[job("one", 2, least=1, **claiming("pair"))]],
        DEVICES,
        templates={"pair": {**wanting(2), "constraints": [{"matchAttribute": f"{_DRIVER}/rack"}]}},
    ),
    "a local volume": Scenario(
        [Machine("with", labels={"disk": "a"}), Machine("without")],
        [[job("one", cpu="3", **mounting("data"))], [job("two", cpu="3")], [job("three", **mounting("data"))]],
        volumes=[Volume(on={"disk": "a"})],
        volume_claims=["data"],
    ),
    "a claim without a volume, and one that does not exist": Scenario(
        [Machine("plain")],
        [[job("one", **mounting("data"))], [job("two", **mounting("none"))]],
        volume_claims=["data"],
    ),
    "a bound volume of a zone": Scenario(
        zoned("a", "b"),
        [[job("one", 2, least=1, cpu="3", **mounting("data"))]],
        volumes=[Volume(labels={ZONE: "b"})],
        volume_claims=["data"],
    ),
    "a node attaches a limited number of volumes": Scenario(
        [Machine("few", attaches=1), Machine("more", cpu="1", attaches=3)],
        [[job("one", **mounting("first"))], [job("two", **mounting("second"))], [job("three", **mounting("third"))]],
        volumes=[Volume(csi=True)] * 3,
        volume_claims=["first", "second", "third"],
    ),
    "a local volume for its first consumer": Scenario(
        [Machine("with", labels={"disk": "a"}), Machine("without")],
        [[job("one", cpu="3", **mounting("data"))], [job("two", cpu="3")], [job("three", **mounting("data"))]],
        volumes=[Volume(on={"disk": "a"})],
        volume_claims=["data"],
        waits_for_consumer=True,
    ),
    "the second claim finds no volume": Scenario(
        [Machine("with", labels={"disk": "a"}), Machine("without")],
        [[job("one", **mounting("first"))], [job("two", **mounting("second"))], [job("three", cpu="4")]],
        volumes=[Volume(on={"disk": "a"})],
        volume_claims=["first", "second"],
        waits_for_consumer=True,
    ),
    "a gang shares a volume of a node that has room for a part of it": Scenario(
        [Machine("with", labels={"disk": "a"}), Machine("without")],
        [[job("three", 3, cpu="1500m", **mounting("data"))], [job("two", 2, cpu="1500m", **mounting("data"))]],
        volumes=[Volume(on={"disk": "a"})],
        volume_claims=["data"],
        waits_for_consumer=True,
    ),
    "no such device": Scenario(
        [Machine("cards", devices=[device("d-0", "small")])],
        [[job("one", **claiming("one"))]],
        DEVICES,
        templates={"one": wanting()},
    ),
}

NOTHING_FITS = {
    "a toleration of another value does not",
    "a gang to spread, and a node that refused one of its pods",
    "no cell has enough CPUs",
    "another policy than the node's",
    "no such device",
    "a claim without a volume, and one that does not exist",
    "a gang that shares a claim without devices yet",
    "a slice that no rack holds",
}
"""The scenarios in which no pod is placed."""
