"""Dynamic resource allocation, tested with Kubernetes objects."""

from dataclasses import replace
from typing import Any

import pytest
from tests.engine.kubernetes import Object, document, node, pod

from hekla.engine import device_objects, scenario
from hekla.engine.device_allocator import DeviceAllocator, DevicesUnavailable
from hekla.engine.device_selectors import SelectorError, selects
from hekla.engine.devices import Device

PLUGIN = {"name": "predicates", "arguments": {"predicate.DynamicResourceAllocationEnable": True}}
GPU = "gpu.example.com"


def device(name: str, **more: Any) -> Object:
    return {"name": name, **more}


def slice_of(node_name: str, *devices: Object, **more: Any) -> Object:
    """A ResourceSlice with all devices of a node."""
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1} | more.pop("pool", {})
    return {
        "metadata": {"name": node_name},
        "spec": {"driver": GPU, "nodeName": node_name, "pool": pool, "devices": devices} | more,
    }


def request(name: str = "r", count: int = 1, **more: Any) -> Object:
    return {"name": name, "exactly": {"deviceClassName": "gpu", "count": count} | more}


def claim(name: str, *requests: Object, constraints: Any = (), **status: Any) -> Object:
    devices = {"requests": requests or [request()], "constraints": constraints}
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": {"devices": devices}, "status": status}


def pod_with_claims(name: str, *claims: str, **more: Any) -> Object:
    return pod(name, resourceClaims=[{"name": one, "resourceClaimName": one} for one in claims], **more)


def device_scenario(
    slices: list[Object], claims: list[Object], pods: list[Object], *expressions: str, **more: Any
) -> Object:
    selectors = [{"cel": {"expression": one}} for one in expressions]
    objects = {
        "resourceSlices": slices,
        "resourceClaims": claims,
        "deviceClasses": [{"metadata": {"name": "gpu"}, "spec": {"selectors": selectors}}],
    }
    nodes = [node(name) for name in more.pop("nodes", ("a", "b"))]
    return document(nodes, pods, plugins=[more.pop("plugin", PLUGIN)], **objects)


def binds(played: Object) -> dict[str, str]:
    (outcome,) = scenario.play(scenario.read(played))
    return {name.removeprefix("ns/"): node_name for name, node_name in outcome["binds"].items()}


# Resource slices.

ONLY_B = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}]}


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        ([slice_of("b", device("g0"))], {"p": "b"}),
        ([slice_of("b")], {}),
        ([slice_of("", device("g0"), nodeName="", allNodes=True)], {"p": "a"}),
        ([slice_of("", device("g0"), nodeName="", nodeSelector=ONLY_B)], {"p": "b"}),
        ([slice_of("", device("g0", nodeName="b"), nodeName="", perDeviceNodeSelection=True)], {"p": "b"}),
        ([slice_of("", device("g0", nodeSelector=ONLY_B), nodeName="", perDeviceNodeSelection=True)], {"p": "b"}),
        ([slice_of("b", device("g0"), pool={"resourceSliceCount": 2})], {}),
        ([slice_of("b", device("g0")), slice_of("b", pool={"generation": 2})], {}),
    ],
)
def test_pod_starts_on_a_node_with_a_device(slices: list[Object], expected: dict[str, str]) -> None:
    assert binds(device_scenario(slices, [claim("c")], [pod_with_claims("p", "c")])) == expected


def test_claims_are_ignored_unless_dra_is_enabled() -> None:
    assert binds(device_scenario([], [claim("c")], [pod_with_claims("p", "c")], plugin={"name": "predicates"})) == {
        "p": "a"
    }


# Allocation.


def test_device_is_allocated_once() -> None:
    found = binds(
        device_scenario(
            [slice_of("b", device("g0"))],
            [claim("c"), claim("d")],
            [pod_with_claims("p", "c"), pod_with_claims("q", "d")],
        )
    )
    assert found == {"p": "b"}


def test_pods_with_a_shared_claim_share_its_device() -> None:
    slices = [slice_of("a", device("g0")), slice_of("b", device("g0"))]
    found = binds(
        device_scenario(
            slices, [claim("c")], [pod_with_claims("p", "c"), pod_with_claims("q", "c", nodeSelector={"zone": "x"})]
        )
    )
    assert found == {"p": "a"}
    read = scenario.read(device_scenario(slices, [claim("c")], [pod_with_claims("p", "c"), pod_with_claims("q", "c")]))
    (as_volcano,) = scenario.play(read)
    assert as_volcano["binds"] == {"ns/p": "a"}, "Volcano waits until the claim is allocated"
    (outcome,) = scenario.play(replace(read, policy=replace(read.policy, compatibility="hekla")))
    assert outcome["binds"] == {"ns/p": "a", "ns/q": "a"}


def test_running_pod_without_recorded_devices_holds_devices() -> None:
    running = pod_with_claims("runs", "old", on="b")
    found = binds(
        device_scenario([slice_of("b", device("g0"))], [claim("old"), claim("c")], [running, pod_with_claims("p", "c")])
    )
    assert found == {}


def test_allocated_claim_is_used_on_its_node() -> None:
    has = {"devices": {"results": [{"request": "r", "driver": GPU, "pool": "b", "device": "g0"}]}}
    has["nodeSelector"] = ONLY_B
    claims = [claim("c", allocation=has), claim("d")]
    found = binds(
        device_scenario([slice_of("b", device("g0"))], claims, [pod_with_claims("p", "c"), pod_with_claims("q", "d")])
    )
    assert found == {"p": "b"}


@pytest.mark.parametrize("missing", ["other", ""])
def test_pod_waits_for_a_missing_claim(missing: str) -> None:
    assert binds(device_scenario([slice_of("b", device("g0"))], [claim("c")], [pod_with_claims("p", missing)])) == {}


def test_claim_from_a_template_is_found_by_the_name_in_the_status() -> None:
    waits = pod("p", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}])
    assert binds(device_scenario([slice_of("b", device("g0"))], [claim("p-gpu-x")], [waits])) == {}
    waits["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "p-gpu-x"}]
    assert binds(device_scenario([slice_of("b", device("g0"))], [claim("p-gpu-x")], [waits])) == {"p": "b"}


# Counts and constraints.


@pytest.mark.parametrize(
    ("request_spec", "expected"),
    [
        (request(count=2), {"p": "b"}),
        (request(count=3), {}),
        (request(count=33), {}),
        (request(allocationMode="All"), {"p": "a"}),
        (request(deviceClassName="unknown"), {}),
    ],
)
def test_all_devices_of_a_request_are_on_one_node(request_spec: Object, expected: dict[str, str]) -> None:
    slices = [slice_of("a", device("g0")), slice_of("b", device("g0"), device("g1"))]
    assert binds(device_scenario(slices, [claim("c", request_spec)], [pod_with_claims("p", "c")])) == expected


def test_allocation_mode_all_needs_every_device_free() -> None:
    claims = [claim("c"), claim("d", request(allocationMode="All"))]
    slices = [slice_of("a", device("g0"), device("g1"))]
    assert binds(device_scenario(slices, claims, [pod_with_claims("p", "c"), pod_with_claims("q", "d")])) == {"p": "a"}


@pytest.mark.parametrize(("requests", "expected"), [([], {}), (["r", "s"], {}), (["r"], {"p": "a"})])
def test_match_attribute_constraint(requests: list[str], expected: dict[str, str]) -> None:
    model = [{f"{GPU}/model": {"string": word}, "board": {"int": at}} for at, word in enumerate("xyx")]
    slices = [slice_of("a", *(device(f"g{at}", attributes=one) for at, one in enumerate(model)))]
    alike = {"matchAttribute": f"{GPU}/model", "requests": requests}
    three = claim("c", request(count=2), request("s"), constraints=[alike])
    assert binds(device_scenario(slices, [three], [pod_with_claims("p", "c")])) == expected


# Alternatives, admin access, taints and shared counters.

MODELS = [{f"{GPU}/model": {"string": word}} for word in "xyy"]
CARDS = [device(f"g{at}", attributes=one) for at, one in enumerate(MODELS)]


def exactly(**more: Any) -> Object:
    return {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1, **more}}


def of_model(word: str) -> list[Object]:
    return [{"cel": {"expression": f"device.attributes['{GPU}'].model == '{word}'"}}]


OF_X, OF_Y = of_model("x"), of_model("y")


def first(*alternatives: Object) -> Object:
    each = [{"name": f"way{at}", "deviceClassName": "gpu", **one} for at, one in enumerate(alternatives)]
    return {"name": "r", "firstAvailable": each}


def allocated_to(claims: list[Object], *devices_: Object, **of_slice: Any) -> dict[str, list[str]]:
    """The device names of each claim, each preceded by its request."""
    objects = {
        "resourceSlices": [slice_of("a", *devices_, **of_slice)],
        "resourceClaims": claims,
        "deviceClasses": [{"metadata": {"name": "gpu"}, "spec": {}}],
    }
    known = device_objects.devices(objects)
    in_use = {key for one in known.claims.values() for key in one.allocated or ()}
    wanted = {name: one for name, one in known.claims.items() if one.allocated is None}
    found = DeviceAllocator(known.devices, in_use, known.free_counters(in_use)).find(wanted)
    return {
        name.removeprefix("ns/"): [f"{one.request.name} {one.device.name}" for one in devices]
        for name, devices in found.items()
    }


def in_use(name: str, *devices_: str, **more: Any) -> Object:
    results = [{"request": "r", "driver": GPU, "pool": "a", "device": one, **more} for one in devices_]
    return claim(name, allocation={"devices": {"results": results}})


@pytest.mark.parametrize(
    ("alternatives", "expected"),
    [
        ([{"selectors": OF_X}, {"selectors": OF_Y}], ["r/way0 g0"]),
        ([{"selectors": OF_X, "count": 2}, {"selectors": OF_Y, "count": 2}], ["r/way1 g1", "r/way1 g2"]),
        ([{"selectors": of_model("z")}, {"allocationMode": "All"}], ["r/way1 g0", "r/way1 g1", "r/way1 g2"]),
        ([{"count": 33}, {}], ["r/way1 g0"]),
    ],
    ids=["the first", "the first that is there", "all", "not more than a claim may have"],
)  # fmt: skip
def test_first_alternative_that_can_be_met(alternatives: list[Object], expected: list[str]) -> None:
    assert allocated_to([claim("c", first(*alternatives))], *CARDS) == {"c": expected}


def test_another_alternative_is_found_beside_many_devices_of_which_one_is_in_use() -> None:
    cards = [device(f"g{at:02}") for at in range(24)]
    claims = [in_use("used", "g23"), claim("c", first({"allocationMode": "All"}, {}))]
    assert allocated_to(claims, *cards) == {"c": ["r/way1 g00"]}


def test_claims_to_hundreds_of_devices_are_refused_without_an_error() -> None:
    claims = [claim(f"c{at}", *({**exactly(), "name": f"r{n}"} for n in range(32))) for at in range(16)]
    with pytest.raises(DevicesUnavailable):
        allocated_to(claims, *(device(f"g{at}") for at in range(512)))


def test_alternative_is_given_up_for_another_request() -> None:
    """The one card of its first choice is what the other request needs."""
    picky = {**exactly(selectors=of_model("x")), "name": "s"}
    options = first({"selectors": of_model("x")}, {"selectors": of_model("y")})
    assert allocated_to([claim("c", options, picky)], *CARDS) == {"c": ["r/way1 g1", "s g0"]}


@pytest.mark.parametrize(("named", "expected"), [("r", "s g1"), ("r/way0", "s g1"), ("r/way1", "s g0")])
def test_constraint_names_a_request_or_one_alternative(named: str, expected: str) -> None:
    alike = {"matchAttribute": f"{GPU}/model", "requests": [named, "s"]}
    two = claim("c", first({"selectors": of_model("y")}, {}), {**exactly(), "name": "s"}, constraints=[alike])
    cards = [CARDS[0], *reversed(CARDS[1:])]
    assert allocated_to([two], *cards)["c"][1] == expected


def test_unknown_class_of_an_alternative_is_not_passed_over() -> None:
    with pytest.raises(DevicesUnavailable):
        allocated_to([claim("c", first({}, {"deviceClassName": "unknown"}))], *CARDS)


def test_admin_access_gets_a_device_in_use_and_does_not_use_it() -> None:
    watching = exactly(adminAccess=True, allocationMode="All")
    assert allocated_to([in_use("used", "g0"), claim("c", watching)], *CARDS[:2]) == {"c": ["r g0", "r g1"]}
    watched = in_use("seen", "g0", adminAccess=True)
    assert allocated_to([watched, claim("c")], CARDS[0]) == {"c": ["r g0"]}
    with pytest.raises(DevicesUnavailable):
        allocated_to([claim("c", exactly(adminAccess=True), {**exactly(adminAccess=True), "name": "s"})], CARDS[0])


@pytest.mark.parametrize(
    ("effect", "tolerations", "is_allocated"),
    [
        ("NoSchedule", [], False),
        ("NoExecute", [], False),
        ("None", [], True),
        ("NoSchedule", [{"key": "broken", "operator": "Exists"}], True),
        ("NoSchedule", [{"operator": "Exists"}], True),
        ("NoSchedule", [{"key": "broken", "value": "fan"}], True),
        ("NoSchedule", [{"key": "broken", "operator": "Equal", "value": "memory"}], False),
        ("NoExecute", [{"key": "broken", "operator": "Exists", "effect": "NoSchedule"}], False),
    ],
)
def test_tainted_device_is_for_requests_that_tolerate_it(
    effect: str, tolerations: list[Object], is_allocated: bool
) -> None:
    tainted = device("g0", taints=[{"key": "broken", "value": "fan", "effect": effect}])
    found = allocated_to([claim("c", exactly(tolerations=tolerations))], tainted, device("g1"))
    assert found == {"c": ["r g0" if is_allocated else "r g1"]}
    everything = claim("c", exactly(tolerations=tolerations, allocationMode="All"))
    if not is_allocated:
        with pytest.raises(DevicesUnavailable):
            allocated_to([everything], tainted, device("g1"))


MEMORY = [{"name": "card", "counters": {"memory": {"value": "40Gi"}}}]


def part(name: str, memory: str) -> Object:
    return device(name, consumesCounters=[{"counterSet": "card", "counters": {"memory": {"value": memory}}}])


PARTS = [part("whole", "40Gi"), part("half-0", "20Gi"), part("half-1", "20Gi"), part("quarter", "10Gi")]


@pytest.mark.parametrize(
    ("used", "count", "expected"),
    [
        ([], 1, ["r whole"]),
        ([], 2, ["r half-0", "r half-1"]),
        (["half-1"], 1, ["r half-0"]),
        (["half-0", "quarter"], 1, None),
        (["whole"], 1, None),
        ([], 3, None),
    ],
)
def test_parts_of_a_card_share_its_counters(used: list[str], count: int, expected: list[str] | None) -> None:
    claims = [in_use("used", *used), claim("c", exactly(count=count))] if used else [claim("c", exactly(count=count))]
    if expected is None:
        with pytest.raises(DevicesUnavailable):
            allocated_to(claims, *PARTS, sharedCounters=MEMORY)
    else:
        assert allocated_to(claims, *PARTS, sharedCounters=MEMORY) == {"c": expected}


def test_counters_of_another_slice_of_the_pool_count() -> None:
    """A pool of two slices, with the counters in one and the devices in the other, for two machines."""
    pool = {"name": "shared", "resourceSliceCount": 2}
    parts = [{**part(f"on-{node_name}", "30Gi"), "nodeName": node_name} for node_name in "ab"]
    slices = [
        slice_of("", nodeName="", pool=pool, sharedCounters=MEMORY),
        slice_of("", *parts, nodeName="", pool=pool, perDeviceNodeSelection=True),
    ]
    pods = [pod_with_claims("p", "c"), pod_with_claims("q", "d")]
    assert binds(device_scenario(slices, [claim("c"), claim("d")], pods)) == {"p": "a"}


# Expressions.

CARD = Device(
    GPU,
    "pool",
    "g0",
    attributes={GPU: {"model": "x100", "healthy": True, "cores": 8, "driverVersion": "2.10.0"}},
    capacity={GPU: {"memory": 80.0 * 2**30 * 1000}},
)


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("device.driver == 'gpu.example.com'", True),
        ("device.attributes['gpu.example.com'].healthy && device.attributes['gpu.example.com'].cores > 4", True),
        ("device.attributes['gpu.example.com'].model.startsWith('y')", False),
        ("device.attributes['gpu.example.com'].driverVersion.isGreaterThan(semver('2.9.1'))", True),
        ("device.attributes['gpu.example.com'].driverVersion.isLessThan(semver('2.10.0-rc.1'))", False),
        ("device.attributes['gpu.example.com'].driverVersion.major() == 2", True),
        ("device.capacity['gpu.example.com'].memory.compareTo(quantity('80Gi')) == 0", True),
        ("device.capacity['gpu.example.com'].memory.isLessThan(quantity('40Gi'))", False),
        ("'fast' in device.attributes['other.example.com']", False),
        ("cel.bind(own, device.attributes['gpu.example.com'], has(own.model) && !has(own.nothing))", True),
    ],
)
def test_cel_expressions_on_a_device(expression: str, answer: bool) -> None:
    assert selects(expression, CARD) is answer


@pytest.mark.parametrize(
    "expression",
    [
        "device.attributes['some-driver'].healthy",
        "device.driver",
        "device.driver ==",
        "import os",
        "semver('one') == semver('1.0.0')",
        "quantity('much') > quantity('1')",
        "(" * 3000 + "true" + ")" * 3000,
        "true || " * 2000 + "true",
        "{0}.all(a, {0}.all(b, {0}.all(c, {0}.all(d, {0}.all(e, true)))))".format(list(range(20))),
    ],
)
def test_invalid_or_expensive_expression_is_an_error(expression: str) -> None:
    with pytest.raises(SelectorError):
        selects(expression, CARD)


def test_classes_and_requests_select_by_expressions() -> None:
    cards = [device("g0", attributes={"model": {"string": "x"}}), device("g1", attributes={"model": {"string": "y"}})]
    own = request(selectors=[{"cel": {"expression": f"device.attributes['{GPU}'].model == 'y'"}}])
    claims = [claim("c", own), claim("d", own)]
    pods = [pod_with_claims("p", "c"), pod_with_claims("q", "d")]
    assert binds(device_scenario([slice_of("b", *cards)], claims, pods, f"device.driver == '{GPU}'")) == {"p": "b"}
    assert binds(device_scenario([slice_of("b", *cards)], claims, pods, "device.driver == 'other'")) == {}


def test_expression_that_fails_for_a_device_refuses_its_node() -> None:
    slices = [slice_of("a", device("g0")), slice_of("b", device("g0", attributes={"healthy": {"bool": True}}))]
    found = binds(
        device_scenario(slices, [claim("c")], [pod_with_claims("p", "c")], f"device.attributes['{GPU}'].healthy")
    )
    assert found == {"p": "b"}


@pytest.mark.parametrize(
    ("slices", "claims", "unsupported"),
    [
        ([slice_of("a", device("g0", bindingConditions=["ready"]))], [], "bindingConditions of devices"),
        ([slice_of("a", device("g0", allowMultipleAllocations=True))], [], "allowMultipleAllocations of devices"),
        ([], [claim("c", exactly(capacity={"requests": {"memory": "1Gi"}}))], "capacity of claims"),
        ([], [claim("c", first({"capacity": {"requests": {"memory": "1Gi"}}}))], "capacity of claims"),
        ([], [claim("c", constraints=[{"distinctAttribute": "x/y"}])], "constraints of claims"),
    ],
)
def test_unsupported_fields_are_named(slices: list[Object], claims: list[Object], unsupported: str) -> None:
    with pytest.raises(scenario.Unsupported, match=unsupported):
        scenario.read(device_scenario(slices, claims, [pod("p")]))
