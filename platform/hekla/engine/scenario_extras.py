"""What of Kubernetes' objects only single plugins ask for: quotas, budgets, node groups, use and NUMA cells.

Real use and NUMA cells stand in objects of their own in a cluster (metrics, Numatopology); a scenario has them on the
node, as `status.usage` (`cpu` and `memory` in per cent, `measuredAt`) and `status.numa` (`topologyPolicy`, `cpuPolicy`,
`cells` with `allocatable` and `free`).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from hekla.domain.resources import Resources, parse_quantity
from hekla.engine.model import DisruptionBudget, NodeGroupAffinity, NodeUsage, Numa, NumaCell, ResourceQuota, Shard
from hekla.engine.pod_conditions import label_selector

Object = Mapping[str, Any]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def quotas(cluster: Object) -> tuple[ResourceQuota, ...]:
    """What namespaces may use, and what they do use."""
    return tuple(_quota(quota) for quota in cluster.get("resourceQuotas", ()))


def _quota(quota: Object) -> ResourceQuota:
    status = quota.get("status", {})
    hard = status.get("hard") or quota.get("spec", {}).get("hard", {})
    amounts = {name: parse_quantity(name, text) for name, text in hard.items() if not name.startswith("count/")}
    used = {name: text for name, text in status.get("used", {}).items() if not name.startswith("count/")}
    return ResourceQuota(quota["metadata"]["namespace"], amounts, Resources.parse(used))


def budgets(cluster: Object) -> tuple[DisruptionBudget, ...]:
    """What may be evicted now."""
    return tuple(
        DisruptionBudget(
            budget["metadata"]["namespace"],
            label_selector(budget.get("spec", {}).get("selector") or {}) or (),
            int(budget.get("status", {}).get("disruptionsAllowed", 0)),
        )
        for budget in cluster.get("podDisruptionBudgets", ())
    )


def affinity(queue_spec: Object) -> NodeGroupAffinity | None:
    """The node groups of a queue."""
    written = queue_spec.get("affinity")
    if not written:
        return None
    near, far = written.get("nodeGroupAffinity") or {}, written.get("nodeGroupAntiAffinity") or {}
    sides: Sequence[Object] = (near, far)
    required, preferred = ([tuple(side.get(name) or ()) for side in sides] for name in (_REQUIRED, _PREFERRED))
    return NodeGroupAffinity(required[0], preferred[0], required[1], preferred[1])


def usage(node_status: Object) -> NodeUsage | None:
    """What a machine really uses."""
    written = node_status.get("usage")
    if not written:
        return None
    return NodeUsage(float(written.get("cpu", 0)), float(written.get("memory", 0)), instant(written["measuredAt"]))


def numa(node_status: Object) -> Numa | None:
    """The NUMA cells of a machine."""
    written = node_status.get("numa")
    if not written:
        return None
    cells = (
        NumaCell(Resources.parse(cell["allocatable"]), Resources.parse(cell.get("free", cell["allocatable"])))
        for cell in written.get("cells", ())
    )
    return Numa(written.get("topologyPolicy", "none"), written.get("cpuPolicy", "none"), tuple(cells))


def scheduled_at(pod: Object) -> float:
    """When a pod got its node; 0 where nobody says."""
    for condition in pod.get("status", {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            return instant(condition.get("lastTransitionTime"))
    return 0.0


def instant(text: str | None) -> float:
    """Seconds since the epoch; 0 where there is none."""
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def shard(options: Object) -> Shard | None:
    """The nodes of this scheduler, where the options share them out."""
    mode = options.get("shardingMode")
    if mode not in ("hard", "soft"):
        return None
    return Shard(frozenset(options.get("nodesInShard") or ()), is_hard=mode == "hard")
