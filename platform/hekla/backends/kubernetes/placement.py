"""Which constraints of a task its pods on Kubernetes carry.

Hekla has chosen the node. The kubelet admits a pod only if the node still meets its node selector and required node
affinity, and Kubernetes evicts pods that do not tolerate a NoExecute taint. So pods carry these, except what names
labels that only Hekla's scheduler reads (`domain.placement.without_labels`).

Labels of tasks, and the terms that select pods by them, reach every pod of a namespace: a Service could select the pods
of another tenant, and required anti-affinity also keeps pods of others off a node. In a tenant's own namespace pods
carry them as written, for other schedulers and deschedulers. In a shared namespace Hekla's own pods go without, since
the engine has applied them. Volcano schedules by itself, so its pods get them in a form that only one tenant can match.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.api import Json

_REQUIRED, _PREFERRED = (f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred"))


def in_shared_namespace(fields: Mapping[str, Any]) -> Json:
    """The fields of a pod's spec (`domain.placement.pod_fields`) that concern nodes only."""
    of_nodes = {name: fields[name] for name in ("nodeSelector", "tolerations") if name in fields}
    nodes = fields.get("affinity", {}).get("nodeAffinity")
    return {**of_nodes, **({"affinity": {"nodeAffinity": nodes}} if nodes else {})}


def tenant_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Labels of a task under names of Hekla's own, which nothing else in the cluster selects."""
    return {_private_name(name): value for name, value in labels.items()}


def restrict_to_tenant(spec: Json, tenant: str) -> None:
    """Change the terms in a pod's spec so that they select pods of this tenant by `tenant_labels`."""
    for term in _pod_terms(spec):
        for keys in ("matchLabelKeys", "mismatchLabelKeys"):
            if keys in term:
                term[keys] = [_private_name(name) for name in term[keys]]
        if "labelSelector" in term:
            term["labelSelector"] = _restricted(term["labelSelector"], tenant)


def _pod_terms(spec: Json) -> Iterator[Json]:
    yield from spec.get("topologySpreadConstraints", ())
    affinity = spec.get("affinity", {})
    for part in (affinity.get("podAffinity", {}), affinity.get("podAntiAffinity", {})):
        yield from part.get(_REQUIRED, ())
        yield from (one["podAffinityTerm"] for one in part.get(_PREFERRED, ()))


def _restricted(selector: Json, tenant: str) -> Json:
    expressions = [{**one, "key": _private_name(one["key"])} for one in selector.get("matchExpressions", ())]
    labels = {**tenant_labels(selector.get("matchLabels", {})), names.TENANT: names.tenant(tenant)}
    return {"matchLabels": labels, **({"matchExpressions": expressions} if expressions else {})}


def _private_name(label: str) -> str:
    return f"{names.TASK_LABEL}{names.digest(label)}"
