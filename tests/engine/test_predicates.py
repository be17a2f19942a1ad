"""The `predicates` plugin: Kubernetes' filters, tested with Kubernetes objects."""

from dataclasses import replace
from typing import Any

import pytest
from tests.engine.kubernetes import Object, document, node, node_fit, pod

from hekla.engine import scenario

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NODES = [node("a1", "za", labels={"gen": "3"}), node("a2", "za", labels={"gen": "5"}), node("b1", "zb"), node("c1")]
APP = {"matchLabels": {"app": "x"}}


def allowed(waiting: Object, running: list[Object] | None = None, nodes: list[Object] = NODES, **more: Any) -> str:
    """The names of the feasible nodes, separated by spaces."""
    plugin = {"name": "predicates", "arguments": more.pop("arguments", {})}
    session, found = node_fit(document(nodes, [waiting, *(running or [])], plugins=[plugin], **more))
    return " ".join(node.name for node, is_open in zip(session.table.nodes, found.feasible, strict=True) if is_open)


def node_affinity(*terms: Object) -> Object:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def label(key: str, operator: str, *values: str) -> Object:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def near(kind: str, topology: str, selector: Object = APP, **more: Any) -> Object:
    return {kind: {REQUIRED: [{"labelSelector": selector, "topologyKey": topology, **more}]}}


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([label("zone", "In", "za", "zb")], "a1 a2 b1"),
        ([label("zone", "NotIn", "za")], "b1 c1"),
        ([label("gen", "Exists")], "a1 a2"),
        ([label("zone", "DoesNotExist")], "c1"),
        ([label("gen", "Gt", "3")], "a2"),
        ([label("gen", "Lt", "5")], "a1"),
        ([label("zone", "Gt", "1")], ""),
        ([label("gen", "In", "3"), label("zone", "In", "zb")], "a1 b1"),
        ([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["c1"]}]}], "c1"),
        ([{}], ""),
    ],
)
def test_required_node_affinity(terms: list[Object], expected: str) -> None:
    assert allowed(pod("p", affinity=node_affinity(*terms))) == expected


def test_node_selector_and_node_affinity_both_apply() -> None:
    waiting = pod("p", nodeSelector={"zone": "za"}, affinity=node_affinity(label("gen", "Gt", "4")))
    assert allowed(waiting) == "a2"


TAINTED = [
    node("free"),
    node("hard", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]),
    node("soft", taints=[{"key": "k", "value": "v", "effect": "PreferNoSchedule"}]),
    node("out", taints=[{"key": "k", "value": "w", "effect": "NoExecute"}]),
    node("shut", unschedulable=True),
]


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ([], "free soft"),
        ([{"key": "k", "value": "v"}], "free hard soft"),
        ([{"key": "k", "operator": "Exists"}], "free hard out soft"),
        ([{"key": "k", "operator": "Exists", "effect": "NoExecute"}], "free out soft"),
        ([{"operator": "Exists"}], "free hard out shut soft"),
        ([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}], "free shut soft"),
    ],
)
def test_taints_refuse_pods_without_toleration(tolerations: list[Object], expected: str) -> None:
    assert allowed(pod("p", tolerations=tolerations), nodes=TAINTED) == expected


@pytest.mark.parametrize(
    ("port", "expected"),
    [
        ({"hostPort": 80}, "a2 b1 c1"),
        ({"hostPort": 80, "protocol": "UDP"}, "a1 a2 b1 c1"),
        ({"hostPort": 81}, "a1 a2 b1 c1"),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, "a2 b1 c1"),
        ({"hostPort": 90, "hostIP": "10.0.0.2"}, "a1 a2 b1 c1"),
        ({"hostPort": 90, "hostIP": "10.0.0.1"}, "a1 b1 c1"),
    ],
)
def test_host_port_is_used_once(port: Object, expected: str) -> None:
    running = [pod("t", "a1", ports=[{"hostPort": 80}]), pod("u", "a2", ports=[{"hostPort": 90, "hostIP": "10.0.0.1"}])]
    assert allowed(pod("p", ports=[port]), running) == expected


THERE = [pod("t", "a1", {"app": "x"}), pod("far", "b1", {"app": "x"}, namespace="other")]


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        (near("podAffinity", "zone"), "a1 a2"),
        (near("podAffinity", "kubernetes.io/hostname"), "a1"),
        (near("podAffinity", "zone", namespaces=["other"]), "b1"),
        (near("podAffinity", "zone", namespaceSelector={}), "a1 a2 b1"),
        (near("podAffinity", "zone", {"matchLabels": {"app": "y"}}), ""),
        (near("podAntiAffinity", "zone"), "b1 c1"),
        (near("podAntiAffinity", "kubernetes.io/hostname"), "a2 b1 c1"),
        (near("podAntiAffinity", "zone", matchLabelKeys=["rev"]), "a1 a2 b1 c1"),
        (near("podAntiAffinity", "zone", mismatchLabelKeys=["rev"]), "b1 c1"),
    ],
)
def test_required_pod_affinity_and_anti_affinity(affinity: Object, expected: str) -> None:
    assert allowed(pod("p", labels={"rev": "2"}, affinity=affinity), THERE) == expected


def test_first_pod_with_affinity_to_itself_needs_only_the_label() -> None:
    assert allowed(pod("p", labels={"app": "x"}, affinity=near("podAffinity", "zone"))) == "a1 a2 b1"


def test_anti_affinity_of_running_pods_applies() -> None:
    running = [pod("t", "a1", affinity=near("podAntiAffinity", "zone"))]
    assert allowed(pod("p", labels={"app": "x"}), running) == "b1 c1"
    assert allowed(pod("p", labels={"app": "y"}), running) == "a1 a2 b1 c1"


def spread(**more: Any) -> list[Object]:
    return [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": APP} | more]


@pytest.mark.parametrize(
    ("constraint", "labels", "expected"),
    [
        ({}, {"app": "x"}, "b1"),
        ({}, {}, "a1 a2 b1"),
        ({"maxSkew": 2}, {"app": "x"}, "a1 a2 b1"),
        ({"minDomains": 3}, {"app": "x"}, "b1"),
        ({"minDomains": 3}, {}, "a1 a2 b1"),
        ({"topologyKey": "kubernetes.io/hostname"}, {"app": "x"}, "a2 b1 c1"),
        ({"whenUnsatisfiable": "ScheduleAnyway"}, {"app": "x"}, "a1 a2 b1 c1"),
    ],
)
def test_topology_spread(constraint: Object, labels: Object, expected: str) -> None:
    waiting = pod("p", labels=labels, topologySpreadConstraints=spread(**constraint))
    assert allowed(waiting, THERE) == expected


@pytest.mark.parametrize(("policy", "expected"), [("Honor", "a1 a2"), ("Ignore", "")])
def test_topology_spread_node_affinity_policy(policy: str, expected: str) -> None:
    constraint = spread(nodeAffinityPolicy=policy)
    waiting = pod("p", labels={"app": "x"}, nodeSelector={"zone": "za"}, topologySpreadConstraints=constraint)
    assert allowed(waiting, THERE) == expected


@pytest.mark.parametrize(("policy", "expected"), [("Honor", "a1 a2"), ("Ignore", "")])
def test_topology_spread_node_taints_policy(policy: str, expected: str) -> None:
    nodes = [*NODES[:2], node("b1", "zb", taints=[{"key": "k", "effect": "NoSchedule"}])]
    waiting = pod("p", labels={"app": "x"}, topologySpreadConstraints=spread(nodeTaintsPolicy=policy))
    assert allowed(waiting, THERE, nodes) == expected


def claim(name: str, volume: str = "", storage_class: str = "local", size: str = "1Gi") -> Object:
    spec = {"storageClassName": storage_class, "volumeName": volume, "resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": spec}


def volume(name: str, zone: str = "", size: str = "2Gi", **labels: str) -> Object:
    required = {"required": {"nodeSelectorTerms": [label("zone", "In", zone)]}} if zone else {}
    spec = {"storageClassName": "local", "capacity": {"storage": size}, "nodeAffinity": required}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def storage_class(name: str, mode: str = "WaitForFirstConsumer", provisioner: str = "", **more: Any) -> Object:
    return {"metadata": {"name": name}, "volumeBindingMode": mode, "provisioner": provisioner} | more


ONLY_ZB = [{"matchLabelExpressions": [{"key": "zone", "values": ["zb"]}]}]
CLASSES = [
    storage_class("local"),
    storage_class("made", provisioner="p"),
    storage_class("made-in-zb", provisioner="p", allowedTopologies=ONLY_ZB),
    storage_class("at-once", "Immediate", "p"),
]
ZONED = {"topology.kubernetes.io/zone": "east__west"}


@pytest.mark.parametrize(
    ("claims", "volumes", "expected"),
    [
        ([claim("c", "v")], [volume("v", "za")], "a1 a2"),
        ([claim("c", "v")], [volume("v")], "a1 a2 b1 c1"),
        ([claim("c", "gone")], [], ""),
        ([], [], ""),
        ([claim("c")], [volume("v", "zb"), volume("small", "za", "1Mi")], "b1"),
        ([claim("c", storage_class="at-once")], [volume("v")], ""),
        ([claim("c", storage_class="made")], [], "a1 a2 b1 c1"),
        ([claim("c", storage_class="made-in-zb")], [], "b1"),
    ],
)
def test_volumes_restrict_nodes(claims: list[Object], volumes: list[Object], expected: str) -> None:
    waiting = pod("p", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}])
    found = {"persistentVolumeClaims": claims, "persistentVolumes": volumes, "storageClasses": CLASSES}
    assert allowed(waiting, **found) == expected


def changed(one: Object, **parts: Object) -> Object:
    """The object with more fields in its parts."""
    return one | {name: {**one.get(name, {}), **more} for name, more in parts.items()}


FAST = {"selector": {"matchLabels": {"tier": "fast"}}}
ON_B1, ON_A1 = ({"annotations": {"volume.kubernetes.io/selected-node": name}} for name in ("b1", "a1"))


@pytest.mark.parametrize(
    ("claim", "volume", "expected"),
    [
        (claim("c"), volume("v"), "a1 a2 b1 c1"),
        (changed(claim("c"), metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), volume("v"), ""),
        (changed(claim("c"), spec=FAST), volume("v"), ""),
        (changed(claim("c"), spec=FAST), volume("v", tier="fast"), "a1 a2 b1 c1"),
        (changed(claim("c"), spec={"volumeMode": "Block"}), volume("v"), ""),
        (claim("c"), changed(volume("v"), status={"phase": "Released"}), ""),
        (claim("c"), changed(volume("v"), spec={"claimRef": {"namespace": "ns", "name": "other"}}), ""),
        (claim("c"), changed(volume("v", "zb"), spec={"claimRef": {"namespace": "ns", "name": "c"}}), "b1"),
        (changed(claim("c", storage_class="made"), metadata=ON_B1), volume("v"), "b1"),
        (changed(claim("c", storage_class="made-in-zb"), metadata=ON_A1), volume("v"), ""),
    ],
)
def test_volume_fits_its_claim(claim: Object, volume: Object, expected: str) -> None:
    waiting = pod("p", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}])
    found = {"persistentVolumeClaims": [claim], "persistentVolumes": [volume], "storageClasses": CLASSES}
    assert allowed(waiting, **found) == expected


def test_volume_restricts_nodes_to_its_zones() -> None:
    zones = [node(name, labels={"topology.kubernetes.io/zone": name}) for name in ("east", "north", "west")]
    waiting = pod("p", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}])
    found = {"persistentVolumeClaims": [claim("c", "v")], "persistentVolumes": [volume("v", **ZONED)]}
    assert allowed(waiting, nodes=[*zones, node("unzoned")], **found) == "east unzoned west"


def test_volume_is_assumed_by_one_pod() -> None:
    claims, names = [claim("c0"), claim("c1")], ("c0", "c1")
    pods = [pod(c, volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": c}}]) for c in names]
    found = {"persistentVolumeClaims": claims, "persistentVolumes": [volume("v")], "storageClasses": CLASSES}
    (outcome,) = scenario.play(scenario.read(document(NODES, pods, plugins=[{"name": "predicates"}], **found)))
    assert list(outcome["binds"]) == ["ns/c0"]


@pytest.mark.parametrize("off", [False, "false"])
@pytest.mark.parametrize(
    ("name", "waiting"),
    [
        ("NodeAffinity", pod("p", nodeSelector={"no": "such"})),
        ("TaintToleration", pod("p")),
        ("NodePorts", pod("p", ports=[{"hostPort": 80}])),
        ("PodAffinity", pod("p", affinity=near("podAntiAffinity", "kubernetes.io/hostname"))),
        ("PodTopologySpread", pod("p", labels={"app": "x"}, topologySpreadConstraints=spread(minDomains=2))),
    ],
)
def test_filter_can_be_disabled(name: str, waiting: Object, off: object) -> None:
    nodes = [node("n", "z", taints=[{"key": "k", "effect": "NoSchedule"}] if name == "TaintToleration" else [])]
    running = [pod("t", "n", {"app": "x"}, ports=[{"hostPort": 80}])]
    assert allowed(waiting, running, nodes) == ""
    assert allowed(waiting, running, nodes, arguments={f"predicate.{name}Enable": off}) == "n"


def test_anti_affinity_applies_within_one_cycle() -> None:
    affinity = near("podAntiAffinity", "zone")
    pods = [pod(f"p{i}", labels={"app": "x"}, affinity=affinity) for i in range(4)]
    (outcome,) = scenario.play(scenario.read(document(NODES[:3], pods, plugins=[{"name": "predicates"}])))
    assert sorted(outcome["binds"].values()) == ["a1", "b1"]


def test_pods_have_different_classes_only_if_a_constraint_distinguishes_them() -> None:
    pods = [pod(f"p{i}", labels={"index": str(i)}) for i in range(3)]
    plain, _ = node_fit(document(NODES, pods, plugins=[{"name": "predicates"}]))
    assert len({one.class_number for job in plain.jobs.values() for one in job.pods}) == 1
    pods.append(pod("q", affinity=near("podAntiAffinity", "zone", {"matchLabels": {"index": "1"}})))
    mixed, _ = node_fit(document(NODES, pods, plugins=[{"name": "predicates"}]))
    assert len({one.class_number for job in mixed.jobs.values() for one in job.pods}) == 3


@pytest.mark.parametrize(
    ("only", "waiting", "ever"),
    [
        (node("shut", unschedulable=True), {}, True),
        (node("shut", unschedulable=True), {"nodeSelector": {"zone": "x"}}, False),
        (node("shut", cpu="0", unschedulable=True), {}, False),
        (node("tainted", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]), {}, False),
        (node("full", taints=[{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]), {}, True),
    ],
    ids=["cordoned", "and another label", "and too small", "tainted", "with a full disk"],
)
def test_job_can_start_after_a_node_is_schedulable_again(only: Object, waiting: Object, ever: bool) -> None:
    session, found = node_fit(document([only], [pod("p", **waiting)], plugins=[{"name": "predicates"}]))
    assert not found.feasible.any()
    assert found.fit_error(session.dimensions).fits_when_empty == ever


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        ([{"name": "predicates"}], []),
        ([{"name": "predicates", "enablePredicate": False}], ["n"]),
        ([], ["n"]),
    ],
    ids=["checked", "switched off", "without the plugin"],
)
@pytest.mark.parametrize("spec", [{"taints": [{"key": "k", "effect": "NoSchedule"}]}, {"unschedulable": True}])
def test_only_this_plugin_checks_taints_and_cordons(spec: Object, plugins: list[Object], expected: list[str]) -> None:
    read = scenario.read(document([node("n", **spec)], [pod("p")], plugins=plugins))
    (outcome,) = scenario.play(read)
    assert list(outcome["binds"].values()) == expected


def using(name: str, *claims: str, **more: Any) -> Object:
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
    return pod(name, volumes=volumes, **more)


def binds(pods: list[Object], **found: Any) -> dict[str, str]:
    (outcome,) = scenario.play(scenario.read(document(NODES, pods, plugins=[{"name": "predicates"}], **found)))
    return outcome["binds"]


def test_pods_that_share_a_new_volume_are_where_it_is_provisioned() -> None:
    pods = [using(name, "c", requests={"cpu": "1"}) for name in ("p0", "p1", "p2")]
    found = binds(pods, persistentVolumeClaims=[claim("c", storage_class="made")], storageClasses=CLASSES)
    assert len(found) == 3
    assert len(set(found.values())) == 1


def test_pod_that_starts_holds_the_volume_that_its_claim_will_get() -> None:
    starting = using("p0", "c0", nodeName="a1")
    found = {"persistentVolumeClaims": [claim("c0"), claim("c1")], "storageClasses": CLASSES}
    assert binds([starting, using("p1", "c1")], persistentVolumes=[volume("v")], **found) == {}
    assert list(binds([starting, using("p1", "c1")], persistentVolumes=[volume("v"), volume("w")], **found)) == [
        "ns/p1"
    ]


def csi_node(name: str, count: int) -> Object:
    return {"metadata": {"name": name}, "spec": {"drivers": [{"name": "disk.test", "allocatable": {"count": count}}]}}


def attachment(node: str, volume: str) -> Object:
    return {"metadata": {"name": volume}, "spec": {"nodeName": node, "source": {"persistentVolumeName": volume}}}


@pytest.mark.parametrize(
    ("names", "attached", "expected"),
    [
        (["c"], [], "a1 a2 b1 c1"),
        (["c", "d"], [], "a1 a2 c1"),
        (["c"], [attachment("b1", "other")], "a1 a2 c1"),
        (["c"], [attachment("b1", "v")], "a1 a2 b1 c1"),
        (["new"], [attachment("b1", "v")], "a1 a2 c1"),
    ],
)
def test_nodes_attach_a_limited_number_of_volumes(names: list[str], attached: list[Object], expected: str) -> None:
    volumes = [
        changed(volume(name), spec={"csi": {"driver": "disk.test", "volumeHandle": name}})
        for name in ("v", "w", "other")
    ]
    claims = [claim("c", "v"), claim("d", "w"), claim("new", storage_class="disks")]
    classes = [storage_class("disks", provisioner="disk.test")]
    found = {
        "persistentVolumeClaims": claims, "persistentVolumes": volumes, "storageClasses": classes,
        "csiNodes": [csi_node("b1", 1), csi_node("a1", 3)], "volumeAttachments": attached,
    }  # fmt: skip
    assert allowed(using("p", *names), **found) == expected


def test_volumes_of_placed_pods_count() -> None:
    pods = [using(f"p{n}", f"c{n}", nodeSelector={"zone": "zb"}) for n in range(3)]
    claims = [claim(f"c{n}", storage_class="disks") for n in range(3)]
    found = {"persistentVolumeClaims": claims, "storageClasses": [storage_class("disks", provisioner="disk.test")]}
    assert len(binds(pods, csiNodes=[csi_node("b1", 2)], **found)) == 2


def capacity(zones: list[str] | None, size: str | None, **more: Any) -> Object:
    """The room for volumes of the class `disks` in zones; None: in no zone."""
    expressions = [{"key": "zone", "operator": "In", "values": zones}]
    topology = {"nodeTopology": {"matchExpressions": expressions}} if zones is not None else {}
    return {"storageClassName": "disks", **topology, **({"capacity": size} if size else {}), **more}


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        ([], ""),
        ([capacity(["za"], "2Gi")], "a1 a2"),
        ([capacity(["za", "zb"], "2Gi")], "a1 a2 b1"),
        ([capacity(["za"], "2Gi"), capacity(["zb"], "1Mi")], "a1 a2"),
        ([capacity(["za"], "1Mi"), capacity(["za"], "2Gi")], "a1 a2"),
        ([capacity(["za"], "2Gi", maximumVolumeSize="1Mi"), capacity(["zb"], "1Mi", maximumVolumeSize="2Gi")], "b1"),
        ([capacity(["za"], None), capacity(None, "2Gi")], ""),
        ([{"storageClassName": "disks", "nodeTopology": {}, "capacity": "2Gi"}], "a1 a2 b1 c1"),
        ([{**capacity(["za"], "2Gi"), "storageClassName": "other"}], ""),
    ],
)
def test_new_volumes_are_where_their_driver_has_room(reports: list[Object], expected: str) -> None:
    found = {
        "persistentVolumeClaims": [claim("c", storage_class="disks")],
        "storageClasses": [storage_class("disks", provisioner="disk.test")],
        "csiStorageCapacities": reports,
    }
    assert allowed(using("p", "c"), csiDrivers=[csi_driver("disk.test", True)], **found) == expected
    assert allowed(using("p", "c"), csiDrivers=[csi_driver("disk.test", False)], **found) == "a1 a2 b1 c1"


def csi_driver(name: str, reports: bool) -> Object:
    return {"metadata": {"name": name}, "spec": {"storageCapacity": reports}}


def test_a_volume_that_exists_needs_no_room() -> None:
    found = {
        "persistentVolumeClaims": [claim("c")],
        "persistentVolumes": [volume("v", "zb")],
        "storageClasses": [storage_class("local", provisioner="disk.test")],
        "csiDrivers": [csi_driver("disk.test", True)],
    }
    assert allowed(using("p", "c"), **found) == "b1"


def test_pods_that_share_a_new_volume_need_room_where_it_is_made() -> None:
    pods = [using(name, "c", nodeSelector={"zone": zone}) for name, zone in (("p0", "za"), ("p1", "zb"))]
    found = {
        "persistentVolumeClaims": [changed(claim("c", storage_class="disks"), spec={"accessModes": ["ReadWriteMany"]})],
        "storageClasses": [storage_class("disks", provisioner="disk.test")],
        "csiDrivers": [csi_driver("disk.test", True)],
        "csiStorageCapacities": [capacity(["za"], "2Gi")],
    }
    read = scenario.read(document(NODES, pods, plugins=[{"name": "predicates"}], **found))
    read = replace(read, policy=replace(read.policy, compatibility="hekla"))
    (outcome,) = scenario.play(read)
    assert outcome["binds"] == {"ns/p0": "a1", "ns/p1": "b1"}
