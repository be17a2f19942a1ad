"""The conditions in a Kubernetes pod specification that say on which nodes the pod may land."""

from collections.abc import Mapping
from typing import Any

from hekla.engine.model import NodeAffinity, NodeTerm, Requirement, Toleration

Object = Mapping[str, Any]


def node_selector(spec: Object) -> dict[str, str]:
    """Labels that the node must have."""
    return dict(spec.get("nodeSelector", {}))


def tolerations(spec: Object) -> tuple[Toleration, ...]:
    """Taints that the pod bears."""
    return tuple(
        Toleration(t.get("key", ""), t.get("operator") or "Equal", t.get("value", ""), t.get("effect", ""))
        for t in spec.get("tolerations", ())
    )


def node_affinity(spec: Object) -> NodeAffinity:
    """Nodes that the pod must have and nodes that it likes."""
    wishes = spec.get("affinity", {}).get("nodeAffinity", {})
    required = wishes.get("requiredDuringSchedulingIgnoredDuringExecution")
    preferred = wishes.get("preferredDuringSchedulingIgnoredDuringExecution", ())
    return NodeAffinity(
        None if required is None else tuple(_term(term) for term in required.get("nodeSelectorTerms", ())),
        tuple((wish["weight"], _term(wish["preference"])) for wish in preferred),
    )


def _term(term: Object) -> NodeTerm:
    return NodeTerm(_requirements(term.get("matchExpressions", ())), _requirements(term.get("matchFields", ())))


def _requirements(items: Any) -> tuple[Requirement, ...]:  # noqa: ANN401
    return tuple(Requirement(item["key"], item["operator"], tuple(item.get("values", ()))) for item in items)
