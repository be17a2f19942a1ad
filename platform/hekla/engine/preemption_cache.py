"""A cache of classes of jobs for which no pod could be evicted, until something is committed."""

from collections.abc import Callable, Hashable

from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.job_info import JobInfo
from hekla.engine.session import Session

_POINTS = (
    ExtensionPoint.SPARED,
    ExtensionPoint.ALLOCATABLE,
    ExtensionPoint.PREEMPTIVE,
    ExtensionPoint.JOB_PIPELINED,
    ExtensionPoint.JOB_STARVING,
)


def equivalence_key(session: Session, job: JobInfo) -> Hashable | None:
    """The key that equal jobs share; None if the job has no equals or was changed in this session."""
    if job.equivalence_class is None or job.group.uid in session.cache.changed_jobs:
        return None
    return job.equivalence_class, session.class_of(session.representatives(job)[0])


class PreemptionCache:
    """Classes of jobs that an action need not try again. `point`: the extension point that names victims.

    Used only if all functions involved are cacheable; otherwise every job is tried.
    """

    def __init__(self, session: Session, point: ExtensionPoint) -> None:
        self._session, self._revived_pods = session, session.revived_pods
        self._failed: set[Hashable] = set()
        self._is_cacheable = not session.policy.follows_volcano and all(map(session.is_cacheable, (point, *_POINTS)))

    def try_once(self, job: JobInfo, attempt: Callable[[JobInfo], bool]) -> None:
        """Call `attempt`, unless an equal job failed and nothing was committed since.

        `attempt` returns whether it committed something.
        """
        if self._failed and equivalence_key(self._session, job) in self._failed:
            return
        if attempt(job):
            self._failed.clear()
        else:
            self._add(job)

    def _add(self, job: JobInfo) -> None:
        if self._revived_pods != self._session.revived_pods:
            self._revived_pods = self._session.revived_pods
            self._failed.clear()
        elif self._is_cacheable and (key := equivalence_key(self._session, job)) is not None:
            self._failed.add(key)
