"""Devices that pods claim one by one, asked in Kubernetes' own words."""

from typing import Any

import pytest
from tests.engine.kubernetes import Object, document, node, pod

from hekla.engine import scenario
from hekla.engine.device_selectors import SelectorError, selects
from hekla.engine.devices import Device

PLUGIN = {"name": "predicates", "arguments": {"predicate.DynamicResourceAllocationEnable": True}}
GPU = "gpu.example.com"


def device(name: str, **more: Any) -> Object:
    return {"name": name, **more}


def on(where: str, *devices: Object, **more: Any) -> Object:
    """A slice with all devices of a node."""
    pool = {"name": where, "generation": 1, "resourceSliceCount": 1} | more.pop("pool", {})
    return {
        "metadata": {"name": where},
        "spec": {"driver": GPU, "nodeName": where, "pool": pool, "devices": devices} | more,
    }


def request(name: str = "r", count: int = 1, **more: Any) -> Object:
    return {"name": name, "exactly": {"deviceClassName": "gpu", "count": count} | more}


def claim(name: str, *requests: Object, constraints: Any = (), **status: Any) -> Object:
    devices = {"requests": requests or [request()], "constraints": constraints}
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": {"devices": devices}, "status": status}


def claiming(name: str, *claims: str, **more: Any) -> Object:
    return pod(name, resourceClaims=[{"name": one, "resourceClaimName": one} for one in claims], **more)


def world(slices: list[Object], claims: list[Object], pods: list[Object], *expressions: str, **more: Any) -> Object:
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
    return {name.removeprefix("ns/"): where for name, where in outcome["binds"].items()}


# Which devices there are.

ONLY_B = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}]}


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        ([on("b", device("g0"))], {"p": "b"}),
        ([on("b")], {}),
        ([on("", device("g0"), nodeName="", allNodes=True)], {"p": "a"}),
        ([on("", device("g0"), nodeName="", nodeSelector=ONLY_B)], {"p": "b"}),
        ([on("", device("g0", nodeName="b"), nodeName="", perDeviceNodeSelection=True)], {"p": "b"}),
        ([on("b", device("g0"), pool={"resourceSliceCount": 2})], {}),
        ([on("b", device("g0")), on("b", pool={"generation": 2})], {}),
    ],
)
def test_a_pod_lands_where_there_is_a_device(slices: list[Object], expected: dict[str, str]) -> None:
    assert binds(world(slices, [claim("c")], [claiming("p", "c")])) == expected


def test_unless_it_is_switched_on_nobody_asks() -> None:
    assert binds(world([], [claim("c")], [claiming("p", "c")], plugin={"name": "predicates"})) == {"p": "a"}


# Who gets them.


def test_a_device_is_given_once() -> None:
    found = binds(world([on("b", device("g0"))], [claim("c"), claim("d")], [claiming("p", "c"), claiming("q", "d")]))
    assert found == {"p": "b"}


def test_who_shares_a_claim_shares_its_device() -> None:
    slices = [on("a", device("g0")), on("b", device("g0"))]
    found = binds(world(slices, [claim("c")], [claiming("p", "c"), claiming("q", "c", nodeSelector={"zone": "x"})]))
    assert found == {"p": "a"}
    assert binds(world(slices, [claim("c")], [claiming("p", "c"), claiming("q", "c")])) == {"p": "a", "q": "a"}


def test_what_runs_holds_devices_though_it_does_not_say_which() -> None:
    running = claiming("runs", "old", on="b")
    found = binds(world([on("b", device("g0"))], [claim("old"), claim("c")], [running, claiming("p", "c")]))
    assert found == {}


def test_a_claim_that_has_its_devices_is_used_where_they_are() -> None:
    has = {"devices": {"results": [{"request": "r", "driver": GPU, "pool": "b", "device": "g0"}]}}
    has["nodeSelector"] = ONLY_B
    claims = [claim("c", allocation=has), claim("d")]
    found = binds(world([on("b", device("g0"))], claims, [claiming("p", "c"), claiming("q", "d")]))
    assert found == {"p": "b"}


@pytest.mark.parametrize("missing", ["other", ""])
def test_without_its_claim_a_pod_waits(missing: str) -> None:
    assert binds(world([on("b", device("g0"))], [claim("c")], [claiming("p", missing)])) == {}


def test_a_claim_made_from_a_template_is_found_by_its_name() -> None:
    waits = pod("p", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}])
    assert binds(world([on("b", device("g0"))], [claim("p-gpu-x")], [waits])) == {}
    waits["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "p-gpu-x"}]
    assert binds(world([on("b", device("g0"))], [claim("p-gpu-x")], [waits])) == {"p": "b"}


# How many, and which together.


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (request(count=2), {"p": "b"}),
        (request(count=3), {}),
        (request(count=33), {}),
        (request(allocationMode="All"), {"p": "a"}),
        (request(deviceClassName="unknown"), {}),
    ],
)
def test_requests_are_met_on_one_node(asked: Object, expected: dict[str, str]) -> None:
    slices = [on("a", device("g0")), on("b", device("g0"), device("g1"))]
    assert binds(world(slices, [claim("c", asked)], [claiming("p", "c")])) == expected


def test_all_devices_means_that_none_is_taken() -> None:
    claims = [claim("c"), claim("d", request(allocationMode="All"))]
    slices = [on("a", device("g0"), device("g1"))]
    assert binds(world(slices, claims, [claiming("p", "c"), claiming("q", "d")])) == {"p": "a"}


@pytest.mark.parametrize(("requests", "expected"), [([], {}), (["r", "s"], {}), (["r"], {"p": "a"})])
def test_devices_that_must_be_alike(requests: list[str], expected: dict[str, str]) -> None:
    model = [{f"{GPU}/model": {"string": word}, "board": {"int": at}} for at, word in enumerate("xyx")]
    slices = [on("a", *(device(f"g{at}", attributes=one) for at, one in enumerate(model)))]
    alike = {"matchAttribute": f"{GPU}/model", "requests": requests}
    three = claim("c", request(count=2), request("s"), constraints=[alike])
    assert binds(world(slices, [three], [claiming("p", "c")])) == expected


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
def test_an_expression_speaks_of_one_device(expression: str, answer: bool) -> None:
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
def test_one_that_says_nothing_or_too_much_is_an_error(expression: str) -> None:
    with pytest.raises(SelectorError):
        selects(expression, CARD)


def test_classes_and_requests_choose_by_expressions() -> None:
    cards = [device("g0", attributes={"model": {"string": "x"}}), device("g1", attributes={"model": {"string": "y"}})]
    own = request(selectors=[{"cel": {"expression": f"device.attributes['{GPU}'].model == 'y'"}}])
    claims = [claim("c", own), claim("d", own)]
    pods = [claiming("p", "c"), claiming("q", "d")]
    assert binds(world([on("b", *cards)], claims, pods, f"device.driver == '{GPU}'")) == {"p": "b"}
    assert binds(world([on("b", *cards)], claims, pods, "device.driver == 'other'")) == {}


def test_an_expression_that_fails_for_a_device_refuses_its_node() -> None:
    slices = [on("a", device("g0")), on("b", device("g0", attributes={"healthy": {"bool": True}}))]
    found = binds(world(slices, [claim("c")], [claiming("p", "c")], f"device.attributes['{GPU}'].healthy"))
    assert found == {"p": "b"}


@pytest.mark.parametrize(
    ("slices", "claims", "named"),
    [
        ([on("a", device("g0", taints=[{"key": "k", "effect": "NoSchedule"}]))], [], "taints of devices"),
        ([on("a", device("g0", consumesCounters=[{}]))], [], "consumesCounters of devices"),
        ([], [claim("c", request(adminAccess=True))], "adminAccess of claims"),
        ([], [claim("c", {"name": "r", "firstAvailable": [{}]})], "firstAvailable of claims"),
        ([], [claim("c", constraints=[{"distinctAttribute": "x/y"}])], "constraints of claims"),
    ],
)
def test_what_is_not_there_is_named(slices: list[Object], claims: list[Object], named: str) -> None:
    with pytest.raises(scenario.Unsupported, match=named):
        scenario.read(world(slices, claims, [pod("p")]))
