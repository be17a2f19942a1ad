"""Enqueue: admit jobs whose minimum resources the plugins permit; they become Inqueue (`volcano-spec` §4)."""

from collections.abc import Mapping

import numpy as np

from hekla.domain.phases import GangPhase
from hekla.engine import job_queues
from hekla.engine.columns import Vector
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.fair_order import FairShares
from hekla.engine.inputs import Need
from hekla.engine.job_info import JobInfo
from hekla.engine.model import QueueSpec
from hekla.engine.policy import Argument
from hekla.engine.priority_queue import HeapQueue
from hekla.engine.session import Session

NAME = "enqueue"
NEEDS: tuple[Need, ...] = ()


def execute(session: Session, _arguments: Mapping[str, Argument]) -> None:
    """Admit one job of the first queue at a time; a rejected job does not block those behind it."""
    (unique, classes), shares = job_queues.waiting_jobs(session), _claimed_shares(session)
    waiting_classes = (uids for uids in classes if _waits(session.jobs[uids[0]]))
    waiting = job_queues.queues_by_name(session, filter(_waits, unique), waiting_classes, fair_shares=shares)
    for name in [name for name in waiting if session.queues[name].is_draining]:
        draining = waiting.pop(name)
        while len(draining):
            session.is_queue_draining(draining.pop())
    queues: HeapQueue[QueueSpec] = HeapQueue(session.queue_before, (session.queues[name] for name in sorted(waiting)))
    while len(queues):
        queue = queues.pop()
        jobs = waiting[queue.name]
        if not len(jobs):
            continue
        job = jobs.pop()
        if job.min_resources is None or session.is_permitted(ExtensionPoint.JOB_ENQUEUEABLE, job):
            _admit(session, job)
            if shares is not None and job.min_resources is not None:
                shares.add(job, job.min_resources)
        elif session.is_cacheable(ExtensionPoint.JOB_ENQUEUEABLE):
            session.copy_reasons(job, jobs.pop_equivalent())
        queues.push(queue)


def _claimed_shares(session: Session) -> FairShares | None:
    """What people hold in queues with fair order, and what their admitted jobs still need to start."""
    if session.job_orders.fair_shares is None:
        return None
    shares = session.job_orders.fair_shares.copy()
    admitted = (job for job in session.unsettled_jobs.stand_ins() if job.is_admitted)
    shares.add_all(admitted, _minimum_and_claimed, _missing)
    return shares


def _minimum_and_claimed(job: JobInfo) -> tuple[Vector, Vector]:
    return job.claimed if job.min_resources is None else job.min_resources, job.claimed


def _missing(minimum: Vector, claimed: Vector) -> Vector:
    return np.maximum(minimum - claimed, 0.0)


def _waits(job: JobInfo) -> bool:
    return job.phase is GangPhase.PENDING


def _admit(session: Session, job: JobInfo) -> None:
    for hook in session.functions(ExtensionPoint.JOB_ENQUEUED):
        hook(job)
    session.admit(job)
    session.reasons.discard(job.group.uid)
