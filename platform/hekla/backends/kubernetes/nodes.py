"""The machines of a cluster: what they can give to our pods, and whether they take any."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from hekla.backends.base import NodeInfo
from hekla.backends.kubernetes.api import Json
from hekla.domain.resources import InvalidQuantity, Resources

_KEEPS_AWAY = ("NoSchedule", "NoExecute")


def taken_by_others(pods: Iterable[Json]) -> Mapping[str, Resources]:
    """By node what pods of others ask for: it is not ours to give."""
    taken: dict[str, Resources] = defaultdict(Resources)
    for pod in pods:
        if node := pod["spec"].get("nodeName"):
            taken[node] += asked(pod["spec"]) + Resources({"pods": 1})
    return taken


def info(node: Json, taken: Resources) -> NodeInfo:
    """One machine."""
    meta, status = node["metadata"], node.get("status") or {}
    left = amounts(status.get("allocatable") or {}) - taken
    message = _why_not(node["spec"], status)
    return NodeInfo(
        name=meta["name"],
        allocatable=Resources({name: max(0.0, amount) for name, amount in left.items()}),
        labels=meta.get("labels") or {},
        ready=not message,
        message=message,
    )


def _why_not(spec: Json, status: Json) -> str:
    """Why it takes no new pods; empty: it does."""
    if spec.get("unschedulable"):
        return "It is cordoned."
    ready = next((one for one in status.get("conditions") or () if one["type"] == "Ready"), None)
    if ready is None or ready["status"] != "True":
        return str((ready or {}).get("message") or "It has not said that it is ready.")[:500]
    taints = [taint["key"] for taint in spec.get("taints") or () if taint["effect"] in _KEEPS_AWAY]
    return f"It has the taint {taints[0]}." if taints else ""


def asked(spec: Json) -> Resources:
    """What the scheduler counts: all containers, or the greatest of those that run before them."""
    steady = _sum(spec.get("containers") or ())
    for first in spec.get("initContainers") or ():
        asked = _requests(first)
        steady = Resources({name: max(steady.amount(name), asked.amount(name)) for name in {*steady, *asked}})
    return steady + amounts(spec.get("overhead") or {})


def _sum(containers: Iterable[Json]) -> Resources:
    total = Resources()
    for container in containers:
        total += _requests(container)
    return total


def _requests(container: Json) -> Resources:
    return amounts((container.get("resources") or {}).get("requests") or {})


def amounts(quantities: Mapping[str, str]) -> Resources:
    """Those that we understand; a cluster may count odd things."""
    found: dict[str, float] = {}
    for name, text in quantities.items():
        try:
            found |= Resources.parse({name: text})
        except InvalidQuantity:
            continue
    return Resources(found)
