"""Cooldown: a pod is not evicted for some time after it was scheduled (`volcano-spec` §5.4).

The pod's label or annotation `volcano.sh/cooldown-time` sets the duration; an invalid one protects nothing.
"""

from collections.abc import Sequence

from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import PodInfo
from hekla.engine.model import PodStatus
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session
from hekla.lib.durations import seconds

_COOLDOWN = "volcano.sh/cooldown-time"

READS_CLOCK = True
NEEDS = (
    Need(Input.PLACEMENT_TIMES, Lack.NOTHING),
    Need(Input.POD_ANNOTATIONS, Lack.NOTHING),
    Need(Input.POD_LABELS, Lack.PART, gettext_noop("Only annotations set a cooldown time, not labels.")),
)


def open_session(session: Session, option: PluginOption) -> None:
    """Allow the eviction of pods that are not in cooldown, and spare the others."""

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
