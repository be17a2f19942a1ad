"""The nodes of a cluster: their resources for our pods, and whether they accept pods."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from hekla.backends.base import NodeInfo
from hekla.backends.kubernetes.api import Json
from hekla.domain.resources import InvalidQuantity, Resources

_BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")


def requests_of_other_pods(pods: Iterable[Json]) -> Mapping[str, Resources]:
    """The total requests of these pods of others, by node."""
    requested: dict[str, Resources] = defaultdict(Resources)
    for pod in pods:
        if node := pod["spec"].get("nodeName"):
            requested[node] += requested_resources(pod["spec"]) + Resources({"pods": 1})
    return requested


def node_info(node: Json, requested: Resources) -> NodeInfo:
    """The node; its allocatable resources exclude those that others request."""
    meta, status = node["metadata"], node.get("status") or {}
    free = parse_amounts(status.get("allocatable") or {}) - requested
    message = _unready_reason(node["spec"], status)
    return NodeInfo(
        name=meta["name"],
        allocatable=Resources({name: max(0.0, amount) for name, amount in free.items()}),
        labels=meta.get("labels") or {},
        ready=not message,
        message=message,
    )


def _unready_reason(spec: Json, status: Json) -> str:
    """Why the node accepts no new pods; empty if it does."""
    if spec.get("unschedulable"):
        return "It is cordoned."
    ready = next((one for one in status.get("conditions") or () if one["type"] == "Ready"), None)
    if ready is None or ready["status"] != "True":
        return str((ready or {}).get("message") or "It has not said that it is ready.")[:500]
    taints = [taint["key"] for taint in spec.get("taints") or () if taint["effect"] in _BLOCKING_EFFECTS]
    return f"It has the taint {taints[0]}." if taints else ""


def requested_resources(spec: Json) -> Resources:
    """A pod's request as schedulers count it: of all containers, or of the largest init container; plus overhead."""
    total = _sum(spec.get("containers") or ())
    for first in spec.get("initContainers") or ():
        request = _requests(first)
        total = Resources({name: max(total.amount(name), request.amount(name)) for name in {*total, *request}})
    return total + parse_amounts(spec.get("overhead") or {})


def _sum(containers: Iterable[Json]) -> Resources:
    total = Resources()
    for container in containers:
        total += _requests(container)
    return total


def _requests(container: Json) -> Resources:
    return parse_amounts((container.get("resources") or {}).get("requests") or {})


def parse_amounts(quantities: Mapping[str, str]) -> Resources:
    """The resources in these quantities, without those that cannot be parsed."""
    found: dict[str, float] = {}
    for name, text in quantities.items():
        try:
            found |= Resources.parse({name: text})
        except InvalidQuantity:
            continue
    return Resources(found)
