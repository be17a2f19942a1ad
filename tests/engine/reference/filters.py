"""Kubernetes' node filters, as far as a cluster state contains their inputs (`volcano-spec` §5.5)."""

from hekla.domain.taints import Taint
from hekla.engine.model import NodeSpec, PodSpec, Toleration


def refuses(task: PodSpec, node: NodeSpec) -> bool:
    if node.unschedulable:
        return True
    for name, value in task.node_selector.items():
        if name not in node.labels or node.labels[name] != value:
            return True
    for taint in node.taints:
        if taint.effect != "PreferNoSchedule" and not any(_tolerates(one, taint) for one in task.tolerations):
            return True
    return False


def disliked_taints(task: PodSpec, node: NodeSpec) -> int:
    """The number of PreferNoSchedule taints that the task does not tolerate."""
    able = [one for one in task.tolerations if one.effect in ("", "PreferNoSchedule")]
    soft = (taint for taint in node.taints if taint.effect == "PreferNoSchedule")
    return sum(not any(_tolerates(one, taint) for one in able) for taint in soft)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    return (toleration.key, toleration.value) == (taint.key, taint.value)
