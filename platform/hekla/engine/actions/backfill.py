"""Backfill: place pods without requests on any feasible node (`volcano-spec` §4).

Volcano counts such pods as placed before they are, so it may start only a part of a gang. Unless the policy follows
Volcano, a job starts when its minimum is really placed.
"""

from collections.abc import Iterator, Mapping

from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Need
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.model import PodStatus, QueueSpec
from hekla.engine.policy import Argument
from hekla.engine.priority_queue import HeapQueue
from hekla.engine.session import Session

_WAITING = (PodStatus.PENDING, PodStatus.PIPELINED)

NEEDS: tuple[Need, ...] = ()


def execute(session: Session, _arguments: Mapping[str, Argument]) -> None:
    """Make one pass over queues, jobs and pods, in their order at the start."""
    for pod in list(_in_order(session)):
        _place(session, pod)
        if session.is_ready(pod.job) and _has_its_minimum(session, pod.job):
            for allocated in [one for one in pod.job.pods if one.status is PodStatus.ALLOCATED]:
                session.bind(allocated)


def _in_order(session: Session) -> Iterator[PodInfo]:
    waiting: dict[str, list[tuple[JobInfo, list[PodInfo]]]] = {}
    cache, follows = session.cache, session.policy.follows_volcano
    candidates = cache.jobs_without_equals if follows else cache.unique_jobs  # equal jobs have no such pods
    for job in session.valid_jobs(among=(job for job in candidates.values() if job.has_best_effort)):
        if free := [m for m in job.pods if m.best_effort and m.status in _WAITING]:
            waiting.setdefault(job.group.queue, []).append((job, free))
    queues: HeapQueue[QueueSpec] = HeapQueue(session.queue_before, (session.queues[name] for name in waiting))
    while len(queues):
        for _job, free in sorted(waiting[queues.pop().name], key=lambda pair: session.rank(pair[0])):
            yield from session.sort_pods(free)


def _place(session: Session, pod: PodInfo) -> None:
    """Allocate the pod if a node has room now; a pipelined pod is unplaced first."""
    if pod.status is PodStatus.PIPELINED:
        session.unplace(pod)
    best = session.node_fit(pod).best_node()
    if best is not None and best[1]:
        session.place(pod, best[0], PodStatus.ALLOCATED)


def _has_its_minimum(session: Session, job: JobInfo) -> bool:
    counts_gangs = bool(session.functions(ExtensionPoint.JOB_READY)) and not session.policy.follows_volcano
    return not counts_gangs or job.ready_count >= job.group.min_available
