"""The waiting jobs of each queue in job order: single jobs, and classes of equal ones."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain

from hekla.domain.queue_settings import JobOrder
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.fair_order import FairQueue, FairShares
from hekla.engine.job_info import JobInfo
from hekla.engine.priority_queue import HeapQueue, PriorityQueue, RankedQueue
from hekla.engine.session import Session

Uids = Sequence[str]
"""The uids of equal jobs in job order."""


def waiting_jobs(session: Session) -> tuple[list[JobInfo], list[Uids]]:
    """Jobs to examine one by one, and the uids of those that are equal for every plugin."""
    if not _uses_classes(session):
        return [*session.candidate_jobs.values()], []
    cache = session.cache
    stepped_out = (job for job in cache.changed_jobs.values() if job.equivalence_class is not None)
    classes = (
        jobs.uids_without(cache.changed_jobs) for jobs in cache.equivalence_classes if jobs.queue in session.queues
    )
    return [*cache.unique_jobs.values(), *stepped_out], [uids for uids in classes if uids]


def _uses_classes(session: Session) -> bool:
    if session.policy.follows_volcano or session.functions(ExtensionPoint.TASK_CLASS):
        return False
    if JobOrder.SLA in session.job_orders.by_queue.values():  # equal jobs may have different deadlines
        return False
    return session.is_cacheable(ExtensionPoint.JOB_ORDER) and session.is_cacheable(ExtensionPoint.JOB_VALID)


def queues_by_name(
    session: Session,
    unique: Iterable[JobInfo],
    classes: Iterable[Uids] = (),
    *,
    fair_shares: FairShares | None = None,
) -> dict[str, PriorityQueue[JobInfo]]:
    """A priority queue of jobs for each queue that has some. `fair_shares`: what counts as held, if not the present."""
    alone: dict[str, list[JobInfo]] = defaultdict(list)
    for job in unique:
        alone[job.group.queue].append(job)
    alike: dict[str, list[Uids]] = defaultdict(list)
    for uids in classes:
        alike[session.jobs[uids[0]].group.queue].append(uids)
    shares = fair_shares or session.job_orders.fair_shares
    return {
        name: job_queue(session, name, alone[name], alike[name], shares) for name in dict.fromkeys(chain(alone, alike))
    }


def job_queue(
    session: Session,
    name: str,
    unique: Iterable[JobInfo],
    classes: Iterable[Uids] = (),
    fair_shares: FairShares | None = None,
) -> PriorityQueue[JobInfo]:
    """The jobs of one queue in job order: fair, fixed, or re-evaluated if that may change in the session."""
    job_of = session.jobs.__getitem__
    if fair_shares is not None and session.job_orders.by_queue.get(name) is JobOrder.FAIR:
        return FairQueue(fair_shares, session.rank, job_of, unique, classes)
    if session.policy.follows_volcano or session.job_order_changes:
        return HeapQueue(session.job_before, unique)
    return RankedQueue(session.rank, job_of, unique, classes)
