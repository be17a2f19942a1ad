"""Jobs that are alike stand in one line, the oldest first: what is certain of its first is certain of all behind it.

Alike are jobs of one queue and owner that differ in nothing but name and age: none of their tasks has a place yet, all
are of one role, one class and one priority, and as many must start together. A thousand such jobs that find no room
cost one look.
"""

from collections.abc import Container, Hashable, Iterator
from operator import attrgetter

from hekla.engine.gangs import Gang

_AGE = attrgetter("job.created_at", "job.uid")


class Line:
    """Jobs that are alike, by their uids. `queue`: the one that they wait in."""

    __slots__ = ("_in_order", "gangs", "key", "queue")

    def __init__(self, key: Hashable, queue: str) -> None:
        self.key, self.queue = key, queue
        self.gangs: dict[str, Gang] = {}
        self._in_order: list[Gang] | None = None

    def __len__(self) -> int:
        return len(self.gangs)

    def join(self, gang: Gang) -> None:
        """One more. It takes the place that its age gives it."""
        self.gangs[gang.job.uid] = gang
        self._in_order = None

    def leave(self, gang: Gang) -> None:
        """One less."""
        del self.gangs[gang.job.uid]
        self._in_order = None

    def without(self, others: Container[str]) -> list[Gang]:
        """Those whose uids are not among the others, the oldest first."""
        if self._in_order is None:
            self._in_order = sorted(self.gangs.values(), key=_AGE)
        return [gang for gang in self._in_order if gang.job.uid not in others]


class Lines:
    """All lines, kept up with the jobs that come and go."""

    def __init__(self) -> None:
        self._lines: dict[Hashable, Line] = {}

    def __iter__(self) -> Iterator[Line]:
        return iter(self._lines.values())

    def join(self, gang: Gang) -> None:
        """A job came, as it is before a session. It stands in a line if others could be like it."""
        if (key := _likeness(gang)) is not None:
            if key not in self._lines:
                self._lines[key] = Line(key, gang.job.queue)
            gang.line = self._lines[key]
            gang.line.join(gang)

    def leave(self, gang: Gang) -> None:
        """A job that came before is gone."""
        line, gang.line = gang.line, None
        if line is not None:
            line.leave(gang)
            if not line:
                del self._lines[line.key]


def _likeness(gang: Gang) -> Hashable | None:
    """What it has in common with those that are like it; None where it must be looked at by itself."""
    job = gang.job
    if gang.role is None or gang.pending_count != gang.size or gang.is_in_domains or gang.is_nominated:
        return None
    shapes = {member.shape for member in gang.made} or {kind.number for kind in gang.kinds}
    wishes = {(task.priority, task.never_preempts) for task in job.tasks}
    if len(shapes) != 1 or len(wishes) != 1:
        return None
    least = *job.min_task_member.items(), id(gang.minimum)
    place = job.queue, job.namespace, job.owner, job.priority, gang.phase
    return (*place, gang.role, gang.size, job.min_available, *shapes, *wishes, *least)
