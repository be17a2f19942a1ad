"""Which nodes a task may land on at all: schedulable, with the wished labels, without a taint that it cannot bear.

Room is not asked here: it changes with every placement and is looked at by the session itself.
"""

from collections.abc import Callable, Sequence

import numpy as np

from hekla.engine.columns import Mask, NodeTable
from hekla.engine.gangs import Member
from hekla.engine.model import Node, Taint, Toleration
from hekla.engine.places import Refusal
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_REPELLING = frozenset({"NoSchedule", "NoExecute"})


def open_session(session: Session, option: PluginOption) -> None:
    """Refuse nodes, class by class."""
    session.register(Point.PREDICATE, option, _refusals)


def _refusals(member: Member, table: NodeTable) -> Sequence[Refusal]:
    refusals = [
        Refusal(_mask(table, lambda node: node.unschedulable), "not schedulable"),
        Refusal(_mask(table, lambda node: not _has_labels(node, member)), "label does not match"),
    ]
    for taint in sorted({t for node in table.nodes for t in node.taints}, key=lambda t: (t.key, t.value, t.effect)):
        if taint.effect in _REPELLING and not any(_bears(t, taint) for t in member.task.tolerations):
            refusals.append(Refusal(_mask(table, _has_taint(taint)), f"taint {taint.key}"))
    return refusals


def _mask(table: NodeTable, refuses: Callable[[Node], bool]) -> Mask:
    return np.fromiter((refuses(node) for node in table.nodes), dtype=bool, count=len(table))


def _has_taint(taint: Taint) -> Callable[[Node], bool]:
    return lambda node: taint in node.taints


def _has_labels(node: Node, member: Member) -> bool:
    return all(node.labels.get(name) == value for name, value in member.task.node_selector.items())


def _bears(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    return toleration.key == taint.key and toleration.value == taint.value
