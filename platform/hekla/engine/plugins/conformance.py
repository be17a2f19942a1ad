"""Pods that the cluster itself needs are never victims (`volcano-spec` §5.1)."""

from collections.abc import Sequence

from hekla.engine.gangs import Member
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_CRITICAL = frozenset({"system-cluster-critical", "system-node-critical"})
_SYSTEM_NAMESPACE = "kube-system"


def open_session(session: Session, option: PluginOption) -> None:
    """Name the others, and spare these."""
    session.register(Point.PREEMPTABLE, option, _others, is_lasting=True)
    session.register(Point.RECLAIMABLE, option, _others, is_lasting=True)
    session.register(
        Point.EVICTABLE, option, lambda _gang, candidates, _action: _others(None, candidates), is_lasting=True
    )
    session.register(
        Point.SPARED, option, lambda _member, candidates: [m for m in candidates if _is_needed(m)], is_lasting=True
    )


def _others(_member: Member | None, candidates: Sequence[Member]) -> list[Member]:
    return [member for member in candidates if not _is_needed(member)]


def _is_needed(member: Member) -> bool:
    return member.task.priority_class in _CRITICAL or member.job.job.namespace == _SYSTEM_NAMESPACE
