"""Reads objects that only single plugins need: quotas, disruption budgets, node groups, usage and NUMA cells.

Usage and NUMA cells are objects of their own in a cluster (metrics, Numatopology). A scenario has them on the node:
`status.usage` (`cpu` and `memory` in per cent, `measuredAt`) and `status.numa` (`topologyPolicy`, `cpuPolicy`, `cells`
with `allocatable` and `free`).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from hekla.domain.resources import Resources, parse_quantity
from hekla.engine.model import DisruptionBudget, NodeGroupAffinity, NodeUsage, Numa, NumaCell, ResourceQuota, Shard
from hekla.engine.pod_objects import label_selector

Object = Mapping[str, Any]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def quotas(cluster: Object) -> tuple[ResourceQuota, ...]:
    """The resource quotas of namespaces with their usage."""
    return tuple(_quota(quota) for quota in cluster.get("resourceQuotas", ()))


def _quota(quota: Object) -> ResourceQuota:
    status = quota.get("status", {})
    hard = status.get("hard") or quota.get("spec", {}).get("hard", {})
    amounts = {name: parse_quantity(name, text) for name, text in hard.items() if not name.startswith("count/")}
    used = {name: text for name, text in status.get("used", {}).items() if not name.startswith("count/")}
    return ResourceQuota(quota["metadata"]["namespace"], amounts, Resources.parse(used))


def budgets(cluster: Object) -> tuple[DisruptionBudget, ...]:
    """The pod disruption budgets."""
    return tuple(
        DisruptionBudget(
            budget["metadata"]["namespace"],
            label_selector(budget.get("spec", {}).get("selector") or {}) or (),
            int(budget.get("status", {}).get("disruptionsAllowed", 0)),
        )
        for budget in cluster.get("podDisruptionBudgets", ())
    )


def affinity(queue_spec: Object) -> NodeGroupAffinity | None:
    """The node group affinity of a queue."""
    written = queue_spec.get("affinity")
    if not written:
        return None
    near, far = written.get("nodeGroupAffinity") or {}, written.get("nodeGroupAntiAffinity") or {}
    sides: Sequence[Object] = (near, far)
    required, preferred = ([tuple(side.get(name) or ()) for side in sides] for name in (_REQUIRED, _PREFERRED))
    return NodeGroupAffinity(required[0], preferred[0], required[1], preferred[1])


def usage(node_status: Object) -> NodeUsage | None:
    """The measured usage of a node."""
    written = node_status.get("usage")
    if not written:
        return None
    return NodeUsage(float(written.get("cpu", 0)), float(written.get("memory", 0)), instant(written["measuredAt"]))


def numa(node_status: Object) -> Numa | None:
    """The NUMA cells of a node."""
    written = node_status.get("numa")
    if not written:
        return None
    cells = (
        NumaCell(Resources.parse(cell["allocatable"]), Resources.parse(cell.get("free", cell["allocatable"])))
        for cell in written.get("cells", ())
    )
    return Numa(written.get("topologyPolicy", "none"), written.get("cpuPolicy", "none"), tuple(cells))


def scheduled_at(pod: Object) -> float:
    """When a pod was scheduled; 0 if unknown."""
    for condition in pod.get("status", {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            return instant(condition.get("lastTransitionTime"))
    return 0.0


def instant(text: str | None) -> float:
    """Seconds since the epoch; 0 without a text."""
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def shard(options: Object) -> Shard | None:
    """The nodes of this scheduler, if the options divide the nodes into shards."""
    mode = options.get("shardingMode")
    if mode not in ("hard", "soft"):
        return None
    return Shard(frozenset(options.get("nodesInShard") or ()), is_hard=mode == "hard")
