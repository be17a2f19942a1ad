"""The order of the jobs within each queue, by the queue's annotation `hekla.io/job-order`, under every policy.

    fifo        the oldest job first; nothing else counts
    fair        a job of the tenant (namespace) that holds the least in the queue, then of its person (owner) that holds
                the least (`fair_order`); among the jobs of one person the plugins decide
    priority    the higher priority, then the oldest
    sla         the earlier deadline (annotation `sla-waiting-time` of the job, from its creation on), jobs without one
                last, then the oldest

Queues without an order follow the plugins; if no queue has one, nothing is registered. Evictions follow the plugins in
every case. In every order, a job that does not fit does not block the jobs behind it.
"""

from collections.abc import Mapping
from functools import partial
from math import inf

from hekla.domain.queue_settings import JOB_ORDER, JobOrder
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.fair_order import FairShares
from hekla.engine.job_info import JobInfo
from hekla.engine.session import Session
from hekla.lib.durations import seconds

_WAITING_TIMES = ("volcano.sh/sla-waiting-time", "sla-waiting-time")
_NONE = (0.0, 0.0)
Key = tuple[float, float]


def open_session(session: Session) -> None:
    """Register the orders of the queues, if any has one."""
    apply(session, {q.name: q.annotations[JOB_ORDER] for q in session.queues.values() if JOB_ORDER in q.annotations})


def apply(session: Session, names: Mapping[str, str]) -> None:
    """Order the jobs of these queues by the orders of these names. Unknown names change nothing."""
    orders = {queue: JobOrder(name) for queue, name in names.items() if name in set(JobOrder)}
    if not orders:
        return
    known = session.job_orders
    if not known.by_queue:
        session.register_builtin(ExtensionPoint.JOB_ORDER, partial(_key, known.by_queue))
    known.by_queue.update(orders)
    if fair := {queue for queue, order in orders.items() if order is JobOrder.FAIR}:
        if known.fair_shares is None:
            known.fair_shares = FairShares(session.total_resources)
            session.on_change.append(known.fair_shares.update)
        known.fair_shares.include(fair, session.jobs.stand_ins())


def _key(orders: Mapping[str, JobOrder], job: JobInfo) -> Key:
    """The sort key of a job, before those of the plugins. Equal jobs differ in age alone, except by deadline."""
    order, created_at = orders.get(job.group.queue), job.group.created_at
    if order is None or order is JobOrder.FAIR:
        return _NONE
    if order is JobOrder.FIFO:
        return 0.0, created_at
    return (-float(job.group.priority) if order is JobOrder.PRIORITY else _deadline(job)), created_at


def _deadline(job: JobInfo) -> float:
    written = (job.group.annotations.get(name) for name in _WAITING_TIMES)
    waits = next((time for text in written if text and (time := seconds(text)) is not None), None)
    return inf if waits is None else job.group.created_at + waits
