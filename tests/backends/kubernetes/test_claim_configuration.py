"""What Hekla writes to the status of a claim: the devices of its requests and alternatives, and their configuration."""

from types import SimpleNamespace
from typing import Any

from hekla.backends.kubernetes.claim_allocation import ClaimAllocation
from hekla.domain.cluster_objects import ObjectKind
from hekla.engine.device_allocator import AllocatedDevice
from hekla.engine.devices import Device, DeviceRequest


def test_allocation_names_the_alternative_and_only_what_concerns_it() -> None:
    classes = SimpleNamespace(find=lambda _namespace, name: {"spec": {"config": [{"opaque": {"class": name}}]}})
    allocation: Any = ClaimAllocation(None, {ObjectKind.DEVICE_CLASS: classes}, None)  # type: ignore[arg-type]
    options = [{"name": "big", "deviceClassName": "h100"}, {"name": "small", "deviceClassName": "a100"}]
    requests = [
        {"name": "card", "firstAvailable": options},
        {"name": "probe", "exactly": {"deviceClassName": "any", "adminAccess": True}},
    ]
    of_claim = [{"requests": [name], "opaque": {"for": name}} for name in ("card", "card/big", "card/small", "probe")]
    claim = {"spec": {"devices": {"requests": requests, "config": [*of_claim, {"opaque": {"for": "all"}}]}}}
    tolerated = {"key": "broken", "operator": "Exists"}
    chosen = [
        AllocatedDevice(DeviceRequest("card/small", tolerations=(tolerated,)), Device("gpu", "n", "g0")),
        AllocatedDevice(DeviceRequest("probe", is_admin=True), Device("gpu", "n", "g1")),
    ]
    written = allocation._allocation(claim, chosen)["devices"]
    where = {"driver": "gpu", "pool": "n"}
    assert written["results"] == [
        {"request": "card/small", "device": "g0", "tolerations": [tolerated], **where},
        {"request": "probe", "device": "g1", "adminAccess": True, **where},
    ]
    of_classes = [
        (one["requests"], one["opaque"]["class"]) for one in written["config"] if one["source"] == "FromClass"
    ]
    assert of_classes == [(["card/small"], "a100"), (["probe"], "any")]
    of_claims = [one["opaque"]["for"] for one in written["config"] if one["source"] == "FromClaim"]
    assert of_claims == ["card", "card/small", "probe", "all"]
