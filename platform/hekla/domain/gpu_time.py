"""GPU time of a node, divided into classes that add up to its capacity.

Every moment of every GPU is in exactly one class, so shares of capacity need no correction, and idle time cannot be
negative. Times are milliseconds since 1970, amounts thousandths of a GPU; their product is GPU time in microseconds
(`gpu_us`). All of them are integers, so sums over any parts are exact.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

MINUTE_MS = 60_000
GPU_HOUR = 3_600_000_000
"""GPU time of one GPU in one hour."""
IDLE_BELOW = 0.05
"""The part of its GPUs that a pod must keep busy in a minute; below, the minute is idle."""


class GpuClass(StrEnum):
    """What became of GPU time.

    useful: the GPUs were busy. idle: a pod held them and hardly used them. unmeasured: a pod held them, and their use
    is not known. gang: pods held them before their gang ran. preempted, retried, failed: the work was lost, because a
    pod was evicted, because it began again, or because it failed. free: held by no pod. drained: nor open to pods.
    down: of a node that was not ready.
    """

    USEFUL = "useful"
    IDLE = "idle"
    UNMEASURED = "unmeasured"
    GANG = "gang"
    PREEMPTED = "preempted"
    RETRIED = "retried"
    FAILED = "failed"
    FREE = "free"
    DRAINED = "drained"
    DOWN = "down"


HELD = tuple(GpuClass)[:7]
"""The classes of time that pods held. If they hold more than there is, capacity goes to them in this order."""
WASTED = (GpuClass.IDLE, GpuClass.GANG, GpuClass.PREEMPTED, GpuClass.RETRIED, GpuClass.FAILED)
_ORDER = {one: place for place, one in enumerate(HELD)}


class NodeState(StrEnum):
    """Whether pods can start on a node: open, drained (cordoned), or down (not ready)."""

    OPEN = "open"
    DRAINED = "drained"
    DOWN = "down"


_UNHELD = {NodeState.OPEN: GpuClass.FREE, NodeState.DRAINED: GpuClass.DRAINED, NodeState.DOWN: GpuClass.DOWN}


@dataclass(frozen=True, slots=True)
class CapacitySpan:
    """The GPUs of one resource of a node from `begin` until `end`."""

    begin: int
    end: int
    gpus: int
    state: NodeState
    model: str


@dataclass(frozen=True, slots=True)
class PodHolding:
    """A pod that holds GPUs of a node from `bound` until `end`. `ready`: since when its gang runs; None: not yet.

    `outcome`: PREEMPTED, RETRIED or FAILED if its work was lost. `measured`, `idle`: a bit for each minute of the hour.
    """

    key: int
    gpus: int
    bound: int
    ready: int | None
    end: int
    outcome: GpuClass | None = None
    measured: int = 0
    idle: int = 0

    def class_at(self, at: int, minute: int) -> GpuClass:
        """The class of its time at a moment in this minute of the hour."""
        if self.ready is None or at < self.ready:
            return GpuClass.GANG
        if self.outcome:
            return self.outcome
        if not self.measured >> minute & 1:
            return GpuClass.UNMEASURED
        return GpuClass.IDLE if self.idle >> minute & 1 else GpuClass.USEFUL


@dataclass(frozen=True, slots=True)
class GpuShare:
    """Thousandths of a GPU from `since` until `until`.

    `holder`: the key of the holding; None: no pod. `what` None: beyond the capacity.
    """

    model: str
    holder: int | None
    what: GpuClass | None
    gpus: int
    since: int
    until: int

    @property
    def gpu_us(self) -> int:
        return self.gpus * (self.until - self.since)


def divide_minutes(
    spans: Sequence[CapacitySpan], holdings: Sequence[PodHolding], begin: int, end: int, *, hour: int
) -> Iterator[GpuShare]:
    """The GPU time of one resource of a node, from `begin` until `end`, both within the hour that begins at `hour`.

    The same as `divide` of each minute, but a share lasts as long as its class. `spans` must not overlap.
    """
    for since, until in pairwise(_moments(spans, (), begin, end)):
        span = _span_at(spans, since)
        present = [one for one in holdings if one.bound < until and one.end > since]
        unheld = _unheld(span, present, since, until) if span else None
        if span is None or unheld is None:
            for at in range(since - (since - hour) % MINUTE_MS, until, MINUTE_MS):
                minute = (at - hour) // MINUTE_MS
                yield from divide(spans, present, max(at, since), min(at + MINUTE_MS, until), minute=minute)
            continue
        yield from unheld
        for one in present:
            for what, at, after in _classes(one, max(one.bound, since), min(one.end, until), hour) if one.gpus else ():
                yield GpuShare(span.model, one.key, what, one.gpus, at, after)


def _unheld(span: CapacitySpan, holdings: Sequence[PodHolding], since: int, until: int) -> list[GpuShare] | None:
    """What no pod holds; None if pods hold more than there is at any moment."""
    changes = {since: 0, until: 0}
    for one in holdings:
        bound, end = max(one.bound, since), min(one.end, until)
        changes[bound] = changes.get(bound, 0) + one.gpus
        changes[end] = changes.get(end, 0) - one.gpus
    left, found = span.gpus, []
    for at, after in pairwise(sorted(changes)):
        left -= changes[at]
        if left < 0:
            return None
        if left:
            found.append(GpuShare(span.model, None, _UNHELD[span.state], left, at, after))
    return found


def _classes(one: PodHolding, since: int, until: int, hour: int) -> Iterator[tuple[GpuClass, int, int]]:
    """The classes of a holding that gets all that it holds, each with its begin and end."""
    ready = until if one.ready is None else min(max(one.ready, since), until)
    if since < ready:
        yield GpuClass.GANG, since, ready
    if ready == until:
        return
    begin, what = ready, one.class_at(ready, (ready - hour) // MINUTE_MS)
    if one.outcome is None and one.measured:
        for at in range(ready - (ready - hour) % MINUTE_MS + MINUTE_MS, until, MINUTE_MS):
            after = one.class_at(at, (at - hour) // MINUTE_MS)
            if after is not what:
                yield what, begin, at
                begin, what = at, after
    yield what, begin, until


def divide(
    spans: Sequence[CapacitySpan], holdings: Sequence[PodHolding], begin: int, end: int, *, minute: int
) -> Iterator[GpuShare]:
    """The GPU time of one resource of a node, from `begin` until `end`, in this minute of the hour.

    The classes add up to the capacity. `spans` must not overlap.
    """
    for since, until in pairwise(_moments(spans, holdings, begin, end)):
        span = _span_at(spans, since)
        left, model = (span.gpus, span.model) if span else (0, "")
        held = [(one.class_at(since, minute), one) for one in holdings if one.bound <= since < one.end]
        for what, one in sorted(held, key=lambda pair: (_ORDER[pair[0]], pair[1].bound, pair[1].key)):
            part = min(left, one.gpus)
            if part:
                yield GpuShare(model, one.key, what, part, since, until)
            if part < one.gpus:
                yield GpuShare(model, one.key, None, one.gpus - part, since, until)
            left -= part
        if span and left:
            yield GpuShare(model, None, _UNHELD[span.state], left, since, until)


def _span_at(spans: Iterable[CapacitySpan], at: int) -> CapacitySpan | None:
    return next((one for one in spans if one.begin <= at < one.end), None)


def _moments(spans: Iterable[CapacitySpan], holdings: Iterable[PodHolding], begin: int, end: int) -> list[int]:
    """The times at which something changes, in order, with both ends."""
    found = {begin, end}
    for span in spans:
        found |= {span.begin, span.end}
    for one in holdings:
        found |= {one.bound, one.end, begin if one.ready is None else one.ready}
    return sorted(at for at in found if begin <= at <= end)


def changed_since(old: PodHolding | None, new: PodHolding) -> int | None:
    """The first moment whose class differs between two states of a holding; None: no moment.

    Without an old state: all moments of the new one.
    """
    if old is None:
        return new.bound
    if (old.gpus, old.bound) != (new.gpus, new.bound):
        return min(old.bound, new.bound)
    moments = []
    if old.ready != new.ready:
        moments.append(min(at for at in (old.ready, new.ready) if at is not None))
    if old.outcome != new.outcome and new.ready is not None:
        moments.append(new.ready)
    if old.end != new.end:
        moments.append(min(old.end, new.end))
    return min(moments, default=None)
