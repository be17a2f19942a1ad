"""The nodes of a cluster: their resources for our pods, and which pods they accept."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hekla.backends.base import NodeInfo
from hekla.backends.kubernetes.api import Json
from hekla.domain.network_topology import HyperNodeLevel
from hekla.domain.numa import NumaTopology
from hekla.domain.resources import InvalidQuantity, Resources
from hekla.domain.taints import Taint

_UNREADY_TAINTS = frozenset(
    {"node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
)
"""Kubernetes taints nodes that are cordoned or not ready, so that the scheduler keeps pods away."""


def requests_of_other_pods(pods: Iterable[Json]) -> Mapping[str, Resources]:
    """The total requests of these pods of others, by node."""
    requested: dict[str, Resources] = defaultdict(Resources)
    for pod in pods:
        if node := pod["spec"].get("nodeName"):
            requested[node] += requested_resources(pod["spec"]) + Resources({"pods": 1})
    return requested


def node_info(
    node: Json,
    requested: Resources,
    hypernodes: Sequence[HyperNodeLevel] = (),
    numa: NumaTopology | None = None,
) -> NodeInfo:
    """The node; its allocatable resources exclude those that others request. `hypernodes`: those that hold it."""
    meta, spec, status = node["metadata"], node["spec"], node.get("status") or {}
    free = parse_amounts(status.get("allocatable") or {}) - requested
    message = _unready_reason(spec, status)
    return NodeInfo(
        name=meta["name"],
        allocatable=Resources({name: max(0.0, amount) for name, amount in free.items()}),
        labels=meta.get("labels") or {},
        ready=not message,
        message=message,
        taints=tuple(_taints(spec, is_ready=not message)),
        annotations=meta.get("annotations") or {},
        images=_images(status),
        hypernodes=hypernodes,
        numa=numa,
    )


def _unready_reason(spec: Json, status: Json) -> str:
    """Why the node accepts no new pods at all; empty if it accepts those that tolerate its taints."""
    if spec.get("unschedulable"):
        return "It is cordoned."
    ready = next((one for one in status.get("conditions") or () if one["type"] == "Ready"), None)
    if ready is None or ready["status"] != "True":
        return str((ready or {}).get("message") or "It has not said that it is ready.")[:500]
    return ""


def _taints(spec: Json, *, is_ready: bool) -> Iterator[Taint]:
    """Its taints. If it is not ready, without those by which Kubernetes says the same again."""
    for taint in spec.get("taints") or ():
        if is_ready or taint["key"] not in _UNREADY_TAINTS:
            yield Taint(taint["key"], taint.get("value") or "", taint["effect"])


def _images(status: Json) -> dict[str, int]:
    """Sizes in bytes by name. The kubelet reports the largest 50 images, with their tags and digests as names."""
    reported = status.get("images") or ()
    return {name: image.get("sizeBytes") or 0 for image in reported for name in image.get("names") or ()}


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
