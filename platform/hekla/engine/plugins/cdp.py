"""Cooldown: a pod that has just been given its node stays there for a while (`volcano-spec` §5.4).

The pod says for how long, as label or annotation `volcano.sh/cooldown-time`; a text that is no duration protects
nothing.
"""

from collections.abc import Sequence

from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.job_info import PodInfo
from hekla.engine.model import PodStatus
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session
from hekla.lib.durations import seconds

_COOLDOWN = "volcano.sh/cooldown-time"


def open_session(session: Session, option: PluginOption) -> None:
    """Name those whose time is over, and spare the others."""

    def is_fresh(pod: PodInfo) -> bool:
        spec = pod.spec
        cooldown = seconds(spec.labels.get(_COOLDOWN) or spec.annotations.get(_COOLDOWN, ""))
        return bool(
            cooldown
            and pod.status is PodStatus.RUNNING
            and spec.scheduled_at
            and spec.scheduled_at + cooldown > session.now
        )

    def others(_pod: PodInfo | None, candidates: Sequence[PodInfo]) -> list[PodInfo]:
        return [pod for pod in candidates if not is_fresh(pod)]

    session.register(ExtensionPoint.PREEMPTABLE, option, others, is_cacheable=True)
    session.register(ExtensionPoint.RECLAIMABLE, option, others, is_cacheable=True)
    session.register(
        ExtensionPoint.EVICTABLE, option, lambda _job, candidates, _action: others(None, candidates), is_cacheable=True
    )
    session.register(
        ExtensionPoint.SPARED,
        option,
        lambda _pod, candidates: [m for m in candidates if is_fresh(m)],
        is_cacheable=True,
    )
