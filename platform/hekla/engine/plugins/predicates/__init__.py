"""Which nodes a task may land on at all: Kubernetes' filters of the same names (`volcano-spec` §5.5).

One file a filter. Each but the first and the pod count can be switched off by `predicate.<name>Enable: false`; that of
claimed devices must be switched on (`predicate.DynamicResourceAllocationEnable: true`). Room is not asked here: it
changes with every placement and is looked at by the session itself. Limits on the volumes that a node can attach are
not asked for: nothing here knows them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from hekla.engine.columns import NodeTable, Rows
from hekla.engine.gangs import Member
from hekla.engine.places import Refusal
from hekla.engine.plugins.predicates import (
    devices,
    node_affinity,
    pod_affinity,
    pod_count,
    ports,
    spread,
    taints,
    unschedulable,
    volume_binding,
    volume_zone,
)  # fmt: skip
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

Fixed = Callable[[Session, Member], Iterable[Refusal]]
Changing = Callable[[Session, Member], Callable[[Rows], Iterable[Refusal]] | None]
Wide = Callable[[Session, Member], Callable[[], Iterable[Refusal]] | None]

_Filter = TypeVar("_Filter")
_ALWAYS = ""
_CLAIMS_SWITCH = "predicate.DynamicResourceAllocationEnable"
_FIXED: tuple[tuple[str, Fixed], ...] = (
    (_ALWAYS, unschedulable.refusals),
    ("NodeAffinity", node_affinity.refusals),
    ("TaintToleration", taints.refusals),
    ("VolumeZone", volume_zone.refusals),
    ("VolumeBinding", volume_binding.refusals),
)
_CHANGING: tuple[tuple[str, Changing], ...] = ((_ALWAYS, pod_count.refusals_at), ("NodePorts", ports.refusals_at))


def open_session(session: Session, option: PluginOption) -> None:
    """Refuse nodes, class by class."""

    def enabled(filters: Iterable[tuple[str, _Filter]]) -> list[_Filter]:
        return [f for name, f in filters if not name or option.truth(f"predicate.{name}Enable", default=True)]

    fixed, changing = enabled(_FIXED), enabled(_CHANGING)
    wide = enabled(_wide(session))
    if option.truth(_CLAIMS_SWITCH, default=False):
        wide.append(devices.Promises(session).refusals_now)

    def on_node(member: Member, _table: NodeTable) -> Sequence[Refusal]:
        return [refusal for ask in fixed for refusal in ask(session, member)]

    def by_pods(member: Member, _table: NodeTable) -> Callable[[Rows], Sequence[Refusal]] | None:
        voices = [voice for ask in changing if (voice := ask(session, member)) is not None]
        return (lambda rows: [refusal for voice in voices for refusal in voice(rows)]) if voices else None

    def by_others(member: Member, _table: NodeTable) -> Callable[[], Sequence[Refusal]] | None:
        voices = [voice for ask in wide if (voice := ask(session, member)) is not None]
        return (lambda: [refusal for voice in voices for refusal in voice()]) if voices else None

    session.register(Point.PREDICATE, option, on_node)
    session.register(Point.TRIES_EVICTIONS, option, lambda: True)
    session.register(Point.CHANGING_PREDICATE, option, by_pods)
    session.register(Point.WIDE_PREDICATE, option, by_others)


def _wide(session: Session) -> tuple[tuple[str, Wide], ...]:
    return (
        ("PodAffinity", pod_affinity.refusals_now),
        ("PodTopologySpread", spread.refusals_now),
        ("VolumeBinding", volume_binding.Promises(session).refusals_now),
    )
