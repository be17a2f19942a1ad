"""Shares of queues and jobs before and after evictions.

Computed at commit, once per queue and job of a statement, never during the search for victims.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from hekla.engine.decisions import Eviction, ShareHolder, ShareImpact, ShareShift
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.session import Session

Done = Sequence[tuple[PodInfo, Eviction | None]]


def with_shares(session: Session, done: Done) -> list[Eviction]:
    """The evictions of a committed statement, with the share changes that they caused."""
    queues = _ShareChanges(session, ExtensionPoint.QUEUE_SHARE, ShareHolder.QUEUE, done)
    jobs = _ShareChanges(session, ExtensionPoint.JOB_SHARE, ShareHolder.JOB, done)

    def impacts(giver: JobInfo, taker: JobInfo | None) -> tuple[ShareImpact, ...]:
        if taker is None:
            return queues.between(giver.group.queue, "")
        found = queues.between(giver.group.queue, taker.group.queue)
        is_within = giver.group.queue == taker.group.queue
        return found + jobs.between(giver.group.uid, taker.group.uid) if is_within else found

    evicted = ((pod.job, eviction) for pod, eviction in done if eviction is not None)
    return [replace(eviction, shares=impacts(giver, session.jobs.get(eviction.for_job))) for giver, eviction in evicted]


class _ShareChanges:
    """Share changes of queues, or of jobs, as counted by the first plugin that registered."""

    def __init__(self, session: Session, point: ExtensionPoint, of: ShareHolder, done: Done) -> None:
        self._voice, self._of = next(chain.from_iterable(session.named_functions(point)), None), of
        self._holders: Mapping[str, Any] = session.queues if of is ShareHolder.QUEUE else session.jobs
        self._went: dict[str, list[PodInfo]] = defaultdict(list)
        self._came: dict[str, list[PodInfo]] = defaultdict(list)
        self._shifts: dict[str, ShareShift] = {}
        name = _NAMES[of]
        for pod, eviction in done:
            (self._came if eviction is None else self._went)[name(pod)].append(pod)

    def between(self, giver: str, taker: str) -> tuple[ShareImpact, ...]:
        """The share changes of giver and taker (empty: none); nothing if no plugin counts shares."""
        if self._voice is None:
            return ()
        plugin, share = self._voice
        return (ShareImpact(plugin, self._of, self._shift(share, giver), self._shift(share, taker) if taker else None),)

    def _shift(self, share: Callable[..., float], name: str) -> ShareShift:
        if name not in self._shifts:
            holder = self._holders[name]
            before = share(holder, self._went[name], self._came[name])
            self._shifts[name] = ShareShift(float(before), float(share(holder, (), ())))
        return self._shifts[name]


_NAMES: Mapping[ShareHolder, Callable[[PodInfo], str]] = {
    ShareHolder.QUEUE: lambda pod: pod.job.group.queue,
    ShareHolder.JOB: lambda pod: pod.job.group.uid,
}
