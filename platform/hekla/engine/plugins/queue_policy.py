"""Orders the jobs of each queue by the queue's annotation `hekla.io/job-order`.

    fifo        the oldest job first; nothing else counts
    fair        jobs of the namespace that holds the least in this queue, then the oldest
    priority    the higher priority, then the oldest
    sla         the earlier deadline (annotation `sla-waiting-time` of the job, from its creation on), jobs without one
                last, then the oldest

A queue without the annotation follows the argument `default`. Without that, or with an unknown order, the other plugins
decide. List this plugin before those whose order it replaces. In every order, a job that does not fit does not block
the jobs behind it.
"""

from collections import defaultdict
from collections.abc import Callable
from math import inf

import numpy as np

from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine.columns import Vector, share
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session
from hekla.lib.durations import seconds

ANNOTATION = "hekla.io/job-order"
_WAITING_TIMES = ("volcano.sh/sla-waiting-time", "sla-waiting-time")
_ORDERS = frozenset({"fifo", "fair", "priority", "sla"})
Key = Callable[[JobInfo], float]

NEEDS = (
    Need(
        Input.QUEUE_ANNOTATIONS,
        Lack.FALLBACK,
        gettext_noop("The order in its argument “default” applies to all queues."),
        lambda option, _policy: _default(option) in _ORDERS,
    ),
    Need(
        Input.QUEUE_ANNOTATIONS,
        Lack.NOTHING,
        when=lambda option, _policy: _default(option) not in _ORDERS,
    ),
    Need(Input.JOB_ANNOTATIONS, Lack.PART, gettext_noop("The order “sla” is that of age.")),
)


def open_session(session: Session, option: PluginOption) -> None:
    """Order the jobs of each queue."""
    shares = _Shares(session)
    session.on_change.append(shares.update)
    keys: dict[str, Key] = {
        "fifo": lambda _job: 0.0,
        "fair": shares.share_of,
        "priority": lambda job: -float(job.group.priority),
        "sla": _deadline,
    }
    default = _default(option)
    by_queue = {q.name: keys.get(q.annotations.get(ANNOTATION, default)) for q in session.queues.values()}

    def order(job: JobInfo) -> tuple[float, float]:
        key = by_queue[job.group.queue]
        return (0.0, 0.0) if key is None else (key(job), job.group.created_at)

    session.job_order_changes = True
    session.register(ExtensionPoint.JOB_ORDER, option, order)


def _default(option: PluginOption) -> str:
    """The order of queues without the annotation."""
    return str(option.arguments.get("default", ""))


class _Shares:
    """The resources that each namespace holds in a queue, as a part of the cluster."""

    def __init__(self, session: Session) -> None:
        self._total = session.total_resources
        self._held: dict[tuple[str, str], Vector] = defaultdict(lambda: np.zeros_like(session.total_resources))
        for job in session.jobs.values():
            self._held[job.group.queue, job.group.namespace] += job.allocated

    def update(self, pod: PodInfo, _row: int, sign: int) -> None:
        self._held[pod.job.group.queue, pod.job.group.namespace] += sign * pod.request

    def share_of(self, job: JobInfo) -> float:
        return share(self._held[job.group.queue, job.group.namespace], self._total)


def _deadline(job: JobInfo) -> float:
    written = (job.group.annotations.get(name) for name in _WAITING_TIMES)
    waits = next((time for text in written if text and (time := seconds(text)) is not None), None)
    return inf if waits is None else job.group.created_at + waits
