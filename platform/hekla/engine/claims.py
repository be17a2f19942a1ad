"""Kubernetes' resource claims, as far as queues bound them: how many devices of which class a pod claims."""

from collections.abc import Mapping
from typing import Any

from hekla.domain.resources import Resources
from hekla.engine.accounts import DEVICE_CLASS

Object = Mapping[str, Any]


def of_pod(cluster: Object, pod: Object) -> Resources:
    """The devices by class; claims that are not among the objects count for nothing."""
    if not (own := pod["spec"].get("resourceClaims")):
        return Resources()
    wanted = {(pod["metadata"]["namespace"], claim.get("resourceClaimName")) for claim in own}
    claims = cluster.get("resourceClaims", ())
    return sum(
        (_devices(c) for c in claims if (c["metadata"]["namespace"], c["metadata"]["name"]) in wanted), Resources()
    )


def _devices(claim: Object) -> Resources:
    total = Resources()
    for request in claim["spec"].get("devices", {}).get("requests", ()):
        exactly = request.get("exactly", request)
        if "deviceClassName" in exactly:
            total += Resources.parse({DEVICE_CLASS + exactly["deviceClassName"]: exactly.get("count", 1)})
    return total
