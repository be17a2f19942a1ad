"""Admission by the whole cluster: admitted jobs may exceed it only by a factor (`volcano-spec` §5.4)."""

from dataclasses import replace

import numpy as np

from hekla.engine.columns import EPSILON, Vector
from hekla.engine.decisions import Cause, PendingReason
from hekla.engine.extension_points import ExtensionPoint, Vote
from hekla.engine.inputs import Need
from hekla.engine.job_info import JobInfo
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_DEFAULT_FACTOR = 1.2

NEEDS: tuple[Need, ...] = ()


def open_session(session: Session, option: PluginOption) -> None:
    """Permit while the minimum resources of all admitted jobs stay within total x factor - used."""
    factor = max(option.number("overcommit-factor", _DEFAULT_FACTOR), 0.0)
    factor = factor if factor >= 1 else _DEFAULT_FACTOR
    used: Vector = session.table.used.sum(axis=0)
    budget, free = session.total_resources * factor - used, session.total_resources - used
    known = (session.queue_totals[name].claimed for name in session.queues if name in session.queue_totals)
    inqueue: Vector = sum(known, np.zeros_like(budget))

    def enqueueable(job: JobInfo) -> Vote:
        least = _minimum(job, inqueue)
        requested = least > 0
        if (least + inqueue < budget + EPSILON)[requested].all():
            return Vote.PERMIT
        if not session.is_explained:
            return Vote.REJECT
        short = requested & (least + inqueue >= budget + EPSILON)
        reason = _refusal(session, least, np.where(short, free - inqueue, np.maximum(free - inqueue, least)))
        is_free, whole = session.dimensions.resources(free), session.dimensions.resources(session.total_resources)
        session.reasons[job.group.uid] += (replace(reason, free=is_free, limit=whole),)
        return Vote.REJECT

    def enqueued(job: JobInfo) -> None:
        inqueue[:] += _minimum(job, inqueue)

    session.register(ExtensionPoint.JOB_ENQUEUEABLE, option, enqueueable, is_cacheable=True)
    session.register(ExtensionPoint.JOB_ENQUEUED, option, enqueued)


def _minimum(job: JobInfo, like: Vector) -> Vector:
    return job.min_resources if job.min_resources is not None else np.zeros_like(like)


def _refusal(session: Session, least: Vector, left: Vector) -> PendingReason:
    return PendingReason(
        cause=Cause.CAPACITY,
        action="enqueue",
        plugin="overcommit",
        code="cluster_is_full",
        need=session.dimensions.resources(least),
        have=session.dimensions.resources(np.where(least > 0, left, 0.0)),
        ever=bool((least < session.total_resources + EPSILON).all()),
    )
