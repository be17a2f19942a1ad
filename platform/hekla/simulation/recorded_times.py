"""When the controller of a cluster saw what happened, from the order of the event log.

The end of a pod has the time at which it ended; the controller sees it later, and decides about several events
together. The log has the order: what stands before a decision was visible to it, what stands behind it was not. Times
are moved within these bounds, so a run that applies them by time repeats the order.
"""

from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hekla.apps.event_log import selectors
from hekla.domain import events
from hekla.domain.phases import GangPhase, JobPhase, PodPhase

PodKey = tuple[str, str, int, int]
"""The subject of the job, task, index and attempt."""
_Event = tuple[str, str, tuple[str, int, int] | None, str]
"""Kind, subject, task with index and attempt, and the new phase."""
_EVICTED, _GANG = "PodEvicted", "GangPhaseChanged"
_DECIDED = frozenset({GangPhase.INQUEUE.value, GangPhase.RUNNING.value, GangPhase.UNKNOWN.value})
"""The phases of gangs that the engine decides. The others follow from pods and commands."""
_DECISIONS = frozenset({"PodBound", _EVICTED, _GANG, "JobUnschedulable"})
_TIMED = frozenset({"JobSubmitted", "PodPhaseChanged", "PodStopRequested", "JobPhaseChanged"})
WHOLE = frozenset({"JobChanged", "NodeChanged", "QueueChanged", "QueueOpened", "QueueClosed", "QueueDrained"})
_ENDED = frozenset(phase.value for phase in PodPhase if phase.is_final)
_OVER = frozenset(phase.value for phase in JobPhase if phase.is_final)


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """A change of a job, a node or a queue: when it took effect, in milliseconds, and its event."""

    at: int
    subject: str
    event: events.Event


@dataclass(slots=True)
class RecordedTimes:
    """Times in milliseconds. `instants`: of decisions, in order; the other times are not after the decision that could
    first see the event.

    `submitted`, `over`: of jobs, by subject. `ends`, `stops`: of pods, when they had ended, and were to be stopped.
    """

    instants: tuple[int, ...] = ()
    submitted: dict[str, int] = field(default_factory=dict)
    over: dict[str, int] = field(default_factory=dict)
    ends: dict[PodKey, int] = field(default_factory=dict)
    stops: dict[PodKey, int] = field(default_factory=dict)
    changes: list[RecordedChange] = field(default_factory=list)


def milliseconds(at: datetime) -> int:
    """A time as workloads have it."""
    return round(at.timestamp() * 1000)


def recorded_times(cluster_id: int, starts_at: datetime, ends_at: datetime) -> RecordedTimes:
    """The times of a period from the event log."""
    rows = selectors.of_cluster(cluster_id, starts_at, ends_at, _DECISIONS | _TIMED, WHOLE)
    return ordered_times(rows)


def ordered_times(rows: Iterable[selectors.ClusterEvent]) -> RecordedTimes:
    """The times of these events, which are in the order of the log."""
    found, log = RecordedTimes(), _Log()
    changes: list[tuple[str, events.Event]] = []
    times: dict[int, int] = {}
    for at, kind, subject, by_person, pod, new, document in rows:
        time = milliseconds(at)
        if kind in _DECISIONS and not by_person and (kind != _GANG or new in _DECIDED):
            log.decide(time)
            if kind == _EVICTED and pod is not None:
                found.stops[(subject, *pod)] = log.floor
        elif kind in WHOLE:
            log.note(time, times, len(changes))
            changes.append((subject, events.parse(kind, document)))
        else:
            _note(log, found, time, (kind, subject, pod, new))
    log.flush()
    found.changes = [RecordedChange(times[at], *change) for at, change in enumerate(changes)]
    found.instants = tuple(log.instants)
    return found


def _note(log: "_Log", found: RecordedTimes, time: int, event: _Event) -> None:
    kind, subject, pod, new = event
    if kind == "JobSubmitted":
        log.note(time, found.submitted, subject)
    elif kind == "JobPhaseChanged" and new in _OVER:
        log.note(time, found.over, subject)
    elif kind == "PodStopRequested" and pod is not None:
        log.note(time, found.stops, (subject, *pod))
    elif kind == "PodPhaseChanged" and pod is not None and new in _ENDED:
        log.note(time, found.ends, (subject, *pod))


class _Log:
    """The events since the last decision. `floor`: its time; `instants`: the times of all decisions."""

    def __init__(self) -> None:
        self.floor, self.instants = -1, list[int]()
        self._open: list[tuple[int, MutableMapping[Any, int], Any]] = []

    def note(self, at: int, times: MutableMapping[Any, int], key: object) -> None:
        """Something happened at this time, as far as known; it is behind the last decision."""
        self._open.append((max(at, self.floor + 1), times, key))

    def decide(self, at: int) -> None:
        """A decision was recorded. One of the same instant as the last, with news in between, gets a later one."""
        at = max(at, self.floor + bool(self._open))
        for time, times, key in self._open:
            times[key] = min(time, at)
        self._open.clear()
        if at > self.floor:
            self.floor = at
            self.instants.append(at)

    def flush(self) -> None:
        """No decision followed."""
        for time, times, key in self._open:
            times[key] = time
        self._open.clear()
