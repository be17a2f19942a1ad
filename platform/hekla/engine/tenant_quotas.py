"""Quotas on what all jobs of a namespace, or of one owner in it, hold together, under every policy.

    admission     the job's minimum fits beside what is held and what admitted jobs still need
    valid         what the job lacks to start fits beside what is held
    allocatable   the pod fits

Releasing pods count until they are gone, and pipelined pods count as held, so no pod starts beyond a quota. Quotas
evict no pods. Without quotas nothing is registered or counted.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hekla.domain.phases import GangPhase
from hekla.engine.columns import EPSILON, Mask, Vector
from hekla.engine.decisions import Cause, PendingReason
from hekla.engine.extension_points import ExtensionPoint, Vote
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.model import EACH_OWNER, PodStatus, QueueSpec, TenantQuota
from hekla.engine.pending_reasons import missing_pods
from hekla.engine.queue_attributes import total_request
from hekla.engine.session import Session, limit_vector

_UNCHANGED = frozenset({PodStatus.RELEASING, PodStatus.RUNNING})
"""The status of a pod after an eviction or its undoing: the pod holds its resources as before."""
_ALSO_HOLDING = frozenset({PodStatus.RELEASING, PodStatus.PIPELINED})
"""Statuses that hold resources and that `JobInfo.allocated` does not include."""


@dataclass(eq=False)
class QuotaUsage:
    """The usage of one quota: `held` now; `claimed` also includes what admitted jobs still need."""

    quota: TenantQuota
    limits: Vector
    held: Vector
    claimed: Vector


def open_session(session: Session, *, is_query: bool = False) -> None:
    """Register the quotas of the state, if any. `is_query`: count only when a quota is asked for."""
    if not session.state.tenant_quotas:
        return
    tracker = QuotaTracker(session)
    if not is_query:
        tracker.count()
    session.quotas_of = tracker.usage_of
    session.on_change.append(tracker.update)
    session.register_builtin(ExtensionPoint.JOB_ENQUEUEABLE, tracker.enqueueable)
    session.register_builtin(ExtensionPoint.JOB_ENQUEUED, tracker.enqueued)
    session.register_builtin(ExtensionPoint.JOB_VALID, tracker.why_not_valid)
    session.register_builtin(ExtensionPoint.ALLOCATABLE, tracker.allocatable)
    session.register_builtin(ExtensionPoint.WHY_NOT_ALLOCATABLE, tracker.why_not_allocatable)
    session.register_builtin(ExtensionPoint.PREEMPTIVE, tracker.preemptive)


class QuotaTracker:
    """The usage of all quotas in one session, counted at its first use."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._quotas: dict[str, list[TenantQuota]] = defaultdict(list)
        for quota in session.state.tenant_quotas:
            self._quotas[quota.namespace].append(quota)
        self._by_owner: dict[tuple[str, str], tuple[QuotaUsage, ...]] = {}
        self._by_key: dict[TenantQuota | tuple[str, str], QuotaUsage] = {}
        self._is_counted = False

    def usage_of(self, job: JobInfo) -> tuple[QuotaUsage, ...]:
        """The quotas that a job counts for: of its namespace, and of its owner (or of `EACH_OWNER`)."""
        if not self._is_counted:
            self.count()
        return self._usages(job)

    def _usages(self, job: JobInfo) -> tuple[QuotaUsage, ...]:
        group = job.group
        if group.namespace not in self._quotas:
            return ()
        key = group.namespace, group.owner
        if key not in self._by_owner:
            self._by_owner[key] = tuple(self._open(*key))
        return self._by_owner[key]

    def _open(self, namespace: str, owner: str) -> Iterator[QuotaUsage]:
        quotas = {quota.owner: quota for quota in self._quotas[namespace]}
        own: TenantQuota | None = quotas.get(owner, quotas.get(EACH_OWNER)) if owner else None
        for quota, whose in ((quotas.get(""), ""), (own, owner)):
            if quota is not None:
                yield self._usage(quota, (namespace, whose))

    def _usage(self, quota: TenantQuota, key: tuple[str, str]) -> QuotaUsage:
        if key not in self._by_key:
            nothing = np.zeros_like(self._session.total_resources)
            most = limit_vector(self._session, quota.limits)
            self._by_key[key] = QuotaUsage(quota, most, nothing, nothing.copy())
        return self._by_key[key]

    def count(self) -> None:
        """Count all jobs. Equal ones mostly share the rows of their amounts, so few differ."""
        self._is_counted = True
        counts, firsts, quotas = Counter[Hashable](), dict[Hashable, JobInfo](), self._quotas
        for job in self._session.cache.all_jobs:
            group = job.group
            if group.namespace not in quotas:
                continue
            key: Hashable = job
            if _ALSO_HOLDING.isdisjoint(job.count_by_status):
                least = id(job.min_resources) if job.phase is GangPhase.INQUEUE else 0
                key = group.namespace, group.owner, id(job.allocated), least
            counts[key] += 1
            firsts[key] = job
        for key, count in counts.items():
            self._count(firsts[key], count)

    def _count(self, job: JobInfo, count: int) -> None:
        """Count so many jobs like this one."""
        held = job.allocated
        if any(job.count_by_status.get(status) for status in _ALSO_HOLDING):
            held = held + total_request(self._session, (m for m in job.pods if m.status in _ALSO_HOLDING))
        claimed = np.maximum(held, _min_resources(job)) if job.phase is GangPhase.INQUEUE else held
        for usage in self._usages(job):
            usage.held += held * count
            usage.claimed += claimed * count

    def update(self, pod: PodInfo, _row: int, sign: int) -> None:
        """Count a pod that was placed (sign 1) or removed (-1); if nothing is counted yet, the first use will."""
        if self._is_counted and pod.status not in _UNCHANGED:
            for usage in self.usage_of(pod.job):
                usage.held += sign * pod.request

    # Registered functions.

    def enqueueable(self, job: JobInfo) -> Vote:
        """Whether the job's minimum fits beside what is claimed; records the reason if not."""
        need = _min_resources(job)
        for usage in self.usage_of(job):
            if _short(usage, usage.claimed, need).any():
                reason = self._refusal(usage, "enqueue", usage.claimed, need)
                self._session.reasons[job.group.uid] += (reason,)
                return Vote.REJECT
        return Vote.ABSTAIN

    def enqueued(self, job: JobInfo) -> None:
        """Count an admitted job."""
        for usage in self.usage_of(job):
            usage.claimed += _min_resources(job)

    def why_not_valid(self, job: JobInfo) -> PendingReason | None:
        """The reason if what the job lacks to start, or its next pod, does not fit."""
        return self._why_not(job, _missing_resources(job)) if self.usage_of(job) and job.pending_count else None

    def allocatable(self, _queue: QueueSpec, pod: PodInfo) -> bool:
        """Whether the pod fits."""
        return not any(_short(one, one.held, pod.request).any() for one in self.usage_of(pod.job))

    def why_not_allocatable(self, _queue: QueueSpec, pods: Sequence[PodInfo]) -> PendingReason | None:
        """The reason if a quota has no room for all these pods."""
        return self._why_not(pods[0].job, total_request(self._session, pods))

    def preemptive(self, queue: QueueSpec, pods: Sequence[PodInfo]) -> bool:
        """Whether evictions could help: the first pod fits its quotas."""
        return all(self.allocatable(queue, pod) for pod in pods[:1])

    def _why_not(self, job: JobInfo, need: Vector) -> PendingReason | None:
        for usage in self.usage_of(job):
            if _short(usage, usage.held, need).any():
                return self._refusal(usage, "allocate", usage.held, need)
        return None

    def _refusal(self, usage: QuotaUsage, action: str, used: Vector, need: Vector) -> PendingReason:
        """A reason with only the resources that are short."""
        short, resources = _short(usage, used, need), self._session.dimensions.resources
        return PendingReason(
            cause=Cause.QUOTA,
            action=action,
            plugin="quota",
            code="member_quota" if usage.quota.owner else "tenant_quota",
            need=resources(np.where(short, need, 0.0)),
            have=resources(np.where(short, usage.limits - used, 0.0)),
            limit=resources(np.where(short, usage.limits, 0.0)),
            used=resources(np.where(short, used, 0.0)),
            ever=not (short & (need > usage.limits + EPSILON)).any(),
        )


def _short(usage: QuotaUsage, used: Vector, need: Vector) -> Mask:
    """Requested dimensions without room; others may exceed their limit already."""
    short: Mask = (need > 0) & (used + need > usage.limits + EPSILON)
    return short


def _min_resources(job: JobInfo) -> Vector:
    """The job's minimum resources; zero if it has none."""
    return np.zeros_like(job.allocated) if job.min_resources is None else job.min_resources


def _missing_resources(job: JobInfo) -> Vector:
    """The least that the job needs to start, or for its next pod; if pods differ, all count as the smallest."""
    pending = job.pending()
    requests = np.array([pod.request for pod in pending]).reshape(len(pending), -1)
    missing = max(missing_pods(job), 1)
    whole: Vector = requests.sum(axis=0)
    return whole if missing >= len(pending) else requests.min(axis=0) * missing
