"""A cache, within one action, of jobs that cannot be placed: a thousand equal jobs are checked once.

While an action places pods, room and shares only shrink, so a failed job stays infeasible. The cache applies to jobs
whose waiting pods have one class and do not depend on other pods, if the plugins that limit shares are cacheable
(`Session.register`).
"""

from collections.abc import Hashable

from hekla.engine.decisions import PendingReason
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.pending_reasons import PendingReasons, missing_pods
from hekla.engine.session import Session


class InfeasibilityCache:
    """Jobs that need not be tried, with their reasons."""

    def __init__(self, session: Session, pending_reasons: PendingReasons) -> None:
        self._session, self._pending_reasons = session, pending_reasons
        self._infeasible_sizes: dict[Hashable, tuple[int, bool]] = {}
        """By queue and class: the smallest number of pods that failed, and whether the queue's share was the reason."""
        self._log_length = -1
        self._has_node_by_class: dict[Hashable, bool] = {}
        self._reasons: dict[Hashable, PendingReason] = {}
        """By class: whether a node fits, and the reasons. Both are cleared when the node table changes."""

    def is_infeasible(self, job: JobInfo) -> bool:
        """Whether the job cannot reach its minimum, or place its next pod; records the reason."""
        if job.uses_hypernodes or job.is_nominated or job.waiting_count:
            return False
        self._drop_if_changed()
        representatives = self._session.representatives(job)
        if len(representatives) == 1:
            return self._is_cached(job, representatives[0]) or self._has_infeasible_pod(job, representatives)
        return job.group.min_available >= job.size and self._has_infeasible_pod(job, representatives)

    def _drop_if_changed(self) -> None:
        stamp = len(self._session.table.change_log)
        if stamp != self._log_length:
            self._log_length, self._has_node_by_class, self._reasons = stamp, {}, {}

    def _has_infeasible_pod(self, job: JobInfo, representatives: list[PodInfo]) -> bool:
        for pod in representatives:
            if not self._has_node(pod):
                self._record(job, pod, by_share=False)
                if len(representatives) == 1:
                    self._infeasible_sizes[self._key(job, pod)] = 1, False
                return True
        return False

    def _is_cached(self, job: JobInfo, representative: PodInfo) -> bool:
        known = self._infeasible_sizes.get(self._key(job, representative))
        if known is None or max(missing_pods(job), 1) < known[0]:
            return False
        self._record(job, representative, by_share=known[1])
        return True

    def add(self, job: JobInfo, *, by_share: bool) -> None:
        """Record a job that was not placed. `by_share`: because of its queue's share, else for lack of room."""
        representatives = self._session.representatives(job)
        is_simple = not (job.uses_hypernodes or job.is_nominated or job.waiting_count) and job.is_of_one_role
        if len(representatives) != 1 or not is_simple or not self._session.is_cacheable(ExtensionPoint.ALLOCATABLE):
            return
        if not self._session.node_fit(representatives[0]).depends_on_pods:
            key, much = self._key(job, representatives[0]), max(missing_pods(job), 1)
            if key not in self._infeasible_sizes or much < self._infeasible_sizes[key][0]:
                self._infeasible_sizes[key] = much, by_share

    def _key(self, job: JobInfo, representative: PodInfo) -> Hashable:
        return job.group.queue, self._session.quotas_of(job), self._session.class_of(representative)

    def _has_node(self, pod: PodInfo) -> bool:
        key = self._session.class_of(pod)
        found = self._has_node_by_class.get(key)
        if found is None:
            node_fit = self._session.node_fit(pod)
            found = self._has_node_by_class[key] = node_fit.depends_on_pods or node_fit.has_room()
        return found

    def _record(self, job: JobInfo, representative: PodInfo, *, by_share: bool) -> None:
        is_alone = job.group.min_available == 1
        key = (self._key(job, representative), missing_pods(job), job.pending_count, is_alone, by_share)
        found = self._reasons.get(key) if job.is_of_one_role else None
        if found is None:
            why = self._pending_reasons.over_queue_share_alike if by_share else self._pending_reasons.no_node_fits
            found = why(job, representative)
        if job.is_of_one_role:
            self._reasons[key] = found
        self._session.reasons[job.group.uid] = (found,)
