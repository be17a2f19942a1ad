"""Dominant resource fairness: the job with the smaller share of the cluster comes first (`volcano-spec` §5.1).

With `enableHierarchy`, queues are ordered too, by their shares in a tree (`hierarchical_drf`).
"""

from collections.abc import Sequence

from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine import victims
from hekla.engine.columns import Vector, share
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.hierarchical_drf import HierarchyTree
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.model import QueueSpec
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_SAME = 1e-6

NEEDS = (
    Need(
        Input.QUEUE_ANNOTATIONS,
        Lack.FALLBACK,
        gettext_noop("All queues are children of the root with equal weights."),
        lambda option, _policy: option.has("enableHierarchy"),
    ),
)


def open_session(session: Session, option: PluginOption) -> None:
    """Order jobs by their current share; pipelined pods count."""
    shares: dict[int, tuple[Vector, float]] = {}
    """Rows and their shares by id of the row: jobs that hold equal amounts mostly share one row."""

    def share_of(job: JobInfo) -> float:
        known = shares.get(id(job.claimed))
        if known is None:
            known = shares[id(job.claimed)] = job.claimed, share(job.claimed, session.total_resources)
        return known[1]

    def preemptable(pod: PodInfo, candidates: Sequence[PodInfo]) -> list[PodInfo]:
        mine = share(pod.job.claimed + pod.request, session.total_resources)
        left: dict[str, Vector] = {}
        chosen = []
        for victim in candidates:
            uid = victim.job.group.uid
            left[uid] = left.get(uid, victim.job.claimed) - victim.request
            other = share(left[uid], session.total_resources)
            if mine < other or abs(mine - other) <= _SAME:
                chosen.append(victim)
        return chosen

    def share_with(job: JobInfo, more: Sequence[PodInfo], less: Sequence[PodInfo]) -> float:
        held = (
            job.claimed
            + victims.total_request(more, session.total_resources)
            - victims.total_request(less, session.total_resources)
        )
        return share(held, session.total_resources)

    session.register(ExtensionPoint.JOB_ORDER, option, share_of, is_cacheable=True)
    session.register(ExtensionPoint.JOB_SHARE, option, share_with)
    session.register(ExtensionPoint.PREEMPTABLE, option, preemptable, is_cacheable=True)
    if option.has("enableHierarchy"):
        _open_hierarchy(session, option)


def _open_hierarchy(session: Session, option: PluginOption) -> None:
    held = {uid: job.claimed for uid, job in session.jobs.items()}
    tree = HierarchyTree(
        [session.jobs[uid] for uid in sorted(session.jobs)], session.queues, held, session.total_resources
    )

    def update(pod: PodInfo, _row: int, _sign: int) -> None:
        held[pod.job.group.uid] = pod.job.claimed
        tree.update_shares()

    def reclaimable(pod: PodInfo, candidates: Sequence[PodInfo]) -> list[PodInfo]:
        mine = session.queues[pod.job.group.queue]
        return [v for v in candidates if _compare_after(pod, v, mine, session.queues[v.job.group.queue]) < 0]

    def _compare_after(pod: PodInfo, victim: PodInfo, mine: QueueSpec, other: QueueSpec) -> float:
        """The order of the two queues if the victim's resources went to the pod."""
        taker, giver = pod.job.group.uid, victim.job.group.uid
        before = {taker: held[taker], giver: held[giver]}
        held[taker] = held[taker] + pod.request
        held[giver] = held[giver] - victim.request
        tree.update_shares()
        order = tree.compare(mine, other)
        held.update(before)
        tree.update_shares()
        return order

    session.on_change.append(update)
    session.register(ExtensionPoint.QUEUE_ORDER, option, tree.compare)
    session.register(ExtensionPoint.RECLAIMABLE, option, reclaimable)
