"""How evictions move shares: what those who lose and those who gain hold of what they deserve, before and after.

Asked when evictions are committed, never while victims are looked for; once for each queue and job of a statement.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from hekla.engine.decisions import Eviction, Holder, Shares, Shift
from hekla.engine.gangs import Gang, Member
from hekla.engine.points import Point
from hekla.engine.session import Session

Done = Sequence[tuple[Member, Eviction | None]]


def told(session: Session, done: Done) -> list[Eviction]:
    """The evictions of a statement that was carried out on the session, with the shares that they moved."""
    if all(eviction is None for _, eviction in done):
        return []
    queues = _Scale(session, Point.QUEUE_SHARE, Holder.QUEUE, done)
    jobs = _Scale(session, Point.JOB_SHARE, Holder.JOB, done)

    def moved(giver: Gang, taker: Gang | None) -> tuple[Shares, ...]:
        if taker is None:
            return queues.between(giver.job.queue, "")
        found = queues.between(giver.job.queue, taker.job.queue)
        is_within = giver.job.queue == taker.job.queue
        return found + jobs.between(giver.job.uid, taker.job.uid) if is_within else found

    evicted = ((member.job, eviction) for member, eviction in done if eviction is not None)
    return [replace(eviction, shares=moved(giver, session.gangs.get(eviction.for_job))) for giver, eviction in evicted]


class _Scale:
    """The shares of queues, or of jobs, as the first plugin counts them that does."""

    def __init__(self, session: Session, point: Point, of: Holder, done: Done) -> None:
        self._voice, self._of = next(chain.from_iterable(session.voices(point)), None), of
        self._holders: Mapping[str, Any] = session.queues if of is Holder.QUEUE else session.gangs
        self._went: dict[str, list[Member]] = defaultdict(list)
        self._came: dict[str, list[Member]] = defaultdict(list)
        self._shifts: dict[str, Shift] = {}
        name = _NAMES[of]
        for member, eviction in done:
            (self._came if eviction is None else self._went)[name(member)].append(member)

    def between(self, giver: str, taker: str) -> tuple[Shares, ...]:
        """Nothing where no plugin counts such shares; a taker without a name is nobody."""
        if self._voice is None:
            return ()
        plugin, share = self._voice
        return (Shares(plugin, self._of, self._shift(share, giver), self._shift(share, taker) if taker else None),)

    def _shift(self, share: Callable[..., float], name: str) -> Shift:
        if name not in self._shifts:
            holder = self._holders[name]
            before = share(holder, self._went[name], self._came[name])
            self._shifts[name] = Shift(float(before), float(share(holder, (), ())))
        return self._shifts[name]


_NAMES: Mapping[Holder, Callable[[Member], str]] = {
    Holder.QUEUE: lambda member: member.job.job.queue,
    Holder.JOB: lambda member: member.job.job.uid,
}
