"""Reads a pod's constraints from its Kubernetes object."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hekla.domain.resources import Resources
from hekla.engine.constraints import (
    ANY_ADDRESS,
    NO_CONSTRAINTS,
    NONZERO_DEFAULTS,
    HostPort,
    NodeSelectorTerm,
    PodAffinityTerm,
    PodConstraints,
    PodSelector,
    Requirement,
    Selector,
    TopologySpreadConstraint,
)  # fmt: skip
from hekla.engine.model import Toleration

Object = Mapping[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_TAKES_VALUES = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}


def pod_constraints(pod: Object) -> PodConstraints:
    """The pod's constraints; the shared `NO_CONSTRAINTS` if it has none."""
    spec = pod["spec"]
    affinity = spec.get("affinity") or {}
    nodes = affinity.get("nodeAffinity") or {}
    near, apart = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
    found = PodConstraints(
        required_node_terms=node_terms(nodes.get(_REQUIRED)),
        preferred_node_terms=tuple((int(t["weight"]), node_term(t["preference"])) for t in nodes.get(_PREFERRED) or ()),
        pod_affinity=tuple(_pod_term(term, pod) for term in near.get(_REQUIRED) or ()),
        pod_anti_affinity=tuple(_pod_term(term, pod) for term in apart.get(_REQUIRED) or ()),
        preferred_pod_affinity=(*_weighted(near, pod, 1), *_weighted(apart, pod, -1)),
        topology_spread=tuple(_spread(constraint, pod) for constraint in spec.get("topologySpreadConstraints") or ()),
        host_ports=tuple(_ports(spec)),
        volume_claims=tuple(_claims(pod)),
        device_claims=tuple(_device_claims(pod)),
        images=tuple(c["image"] for c in _containers(spec) if c.get("image")),
    )
    return NO_CONSTRAINTS if found == NO_CONSTRAINTS else found


def pod_tolerations(spec: Object) -> tuple[Toleration, ...]:
    """The tolerations in the spec of a pod."""
    return tuple(
        Toleration(t.get("key", ""), t.get("operator", "Equal"), t.get("value", ""), t.get("effect", ""))
        for t in spec.get("tolerations") or ()
    )


def node_terms(selector: Object | None) -> tuple[NodeSelectorTerm, ...] | None:
    """The terms of a node selector; None without one."""
    return None if selector is None else tuple(node_term(term) for term in selector.get("nodeSelectorTerms") or ())


def node_term(term: Object) -> NodeSelectorTerm:
    """One term of node affinity."""
    return NodeSelectorTerm(_requirements(term.get("matchExpressions")), _requirements(term.get("matchFields")))


def _requirements(expressions: Iterable[Object] | None) -> Selector:
    return tuple(Requirement(e["key"], e["operator"], tuple(e.get("values") or ())) for e in expressions or ())


def label_selector(selector: Object | None) -> Selector | None:
    """A label selector; None, which matches nothing, if absent or invalid."""
    if selector is None or not all(map(_is_label_expression, selector.get("matchExpressions") or ())):
        return None
    labels = selector.get("matchLabels") or {}
    return (
        *(Requirement(key, "In", (labels[key],)) for key in sorted(labels)),
        *_requirements(selector.get("matchExpressions")),
    )


def _is_label_expression(expression: Object) -> bool:
    """Whether it is a valid label expression: In and NotIn have values, others none; Gt and Lt are not allowed."""
    needs_values = _TAKES_VALUES.get(expression["operator"])
    return needs_values is not None and needs_values == bool(expression.get("values"))


def _with_own_labels(selector: Selector | None, term: Object, pod: Object) -> Selector | None:
    """The selector with `matchLabelKeys` and `mismatchLabelKeys` applied."""
    if selector is None:
        return None
    labels = pod["metadata"].get("labels") or {}
    same = (Requirement(k, "In", (labels[k],)) for k in term.get("matchLabelKeys") or () if k in labels)
    other = (Requirement(k, "NotIn", (labels[k],)) for k in term.get("mismatchLabelKeys") or () if k in labels)
    return (*selector, *same, *other)


def _pod_term(term: Object, pod: Object) -> PodAffinityTerm:
    wide = label_selector(term.get("namespaceSelector"))
    named = frozenset(term.get("namespaces") or (() if wide is not None else (pod["metadata"]["namespace"],)))
    selector = _with_own_labels(label_selector(term.get("labelSelector")), term, pod)
    return PodAffinityTerm(PodSelector(selector, named, wide), term["topologyKey"])


def _weighted(terms: Object, pod: Object, sign: int) -> Iterator[tuple[int, PodAffinityTerm]]:
    for term in terms.get(_PREFERRED) or ():
        yield sign * int(term["weight"]), _pod_term(term["podAffinityTerm"], pod)


def _spread(constraint: Object, pod: Object) -> TopologySpreadConstraint:
    selector = _with_own_labels(label_selector(constraint.get("labelSelector")), constraint, pod)
    return TopologySpreadConstraint(
        topology_key=constraint["topologyKey"],
        max_skew=int(constraint["maxSkew"]),
        selector=PodSelector(selector, frozenset({pod["metadata"]["namespace"]})),
        is_hard=constraint.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule",
        min_domains=int(constraint.get("minDomains") or 1),
        honors_affinity=constraint.get("nodeAffinityPolicy", "Honor") == "Honor",
        honors_taints=constraint.get("nodeTaintsPolicy", "Ignore") == "Honor",
    )


def _containers(spec: Object) -> Iterator[Object]:
    yield from spec.get("initContainers") or ()
    yield from spec.get("containers") or ()


def _ports(spec: Object) -> Iterator[HostPort]:
    for port in (port for container in spec.get("containers") or () for port in container.get("ports") or ()):
        if port.get("hostPort"):
            yield HostPort(int(port["hostPort"]), port.get("protocol") or "TCP", port.get("hostIP") or ANY_ADDRESS)


def _claims(pod: Object) -> Iterator[str]:
    metadata = pod["metadata"]
    for volume in pod["spec"].get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            yield f"{metadata['namespace']}/{claim['claimName']}"
        elif "ephemeral" in volume:
            yield f"{metadata['namespace']}/{metadata['name']}-{volume['name']}"


def _device_claims(pod: Object) -> Iterator[str]:
    """Resource claims as namespace/name. One from a template is named in the pod's status, once it exists."""
    metadata = pod["metadata"]
    made = {one["name"]: one for one in (pod.get("status") or {}).get("resourceClaimStatuses") or ()}
    for claim in pod["spec"].get("resourceClaims") or ():
        name = claim.get("resourceClaimName") or made.get(claim["name"], {}).get("resourceClaimName")
        if name or claim["name"] not in made:
            yield f"{metadata['namespace']}/{name or ''}"


def nonzero_request(spec: Object, overhead: Resources) -> Resources:
    """Cpu and memory as scorers count them, with defaults for containers without requests."""
    together, first = Resources(), Resources()
    for container in spec.get("containers") or ():
        together = together + _nonzero_amounts(container)
    for container in spec.get("initContainers") or ():
        one = _nonzero_amounts(container)
        first = Resources({name: max(first.amount(name), one.amount(name)) for name in NONZERO_DEFAULTS})
    return Resources({name: max(together.amount(name), first.amount(name)) for name in NONZERO_DEFAULTS}) + Resources(
        {name: overhead.amount(name) for name in NONZERO_DEFAULTS}
    )


def _nonzero_amounts(container: Object) -> Resources:
    requests = (container.get("resources") or {}).get("requests") or {}
    named = Resources.parse({name: requests[name] for name in NONZERO_DEFAULTS if name in requests})
    return named + {name: amount for name, amount in NONZERO_DEFAULTS.items() if name not in requests}
