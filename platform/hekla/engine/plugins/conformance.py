"""Pods that the cluster itself needs are never victims (`volcano-spec` §5.1)."""

from collections.abc import Sequence

from hekla.domain.scheduling_inputs import Input
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import PodInfo
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_CRITICAL = frozenset({"system-cluster-critical", "system-node-critical"})
_SYSTEM_NAMESPACE = "kube-system"

NEEDS = (Need(Input.PRIORITY_CLASSES, Lack.NOTHING),)


def open_session(session: Session, option: PluginOption) -> None:
    """Allow other pods as victims, and spare these."""
    session.register(ExtensionPoint.PREEMPTABLE, option, _others, is_cacheable=True)
    session.register(ExtensionPoint.RECLAIMABLE, option, _others, is_cacheable=True)
    session.register(
        ExtensionPoint.EVICTABLE, option, lambda _job, candidates, _action: _others(None, candidates), is_cacheable=True
    )
    session.register(
        ExtensionPoint.SPARED,
        option,
        lambda _pod, candidates: [m for m in candidates if _is_needed(m)],
        is_cacheable=True,
    )


def _others(_pod: PodInfo | None, candidates: Sequence[PodInfo]) -> list[PodInfo]:
    return [pod for pod in candidates if not _is_needed(pod)]


def _is_needed(pod: PodInfo) -> bool:
    return pod.spec.priority_class in _CRITICAL or pod.job.group.namespace == _SYSTEM_NAMESPACE
