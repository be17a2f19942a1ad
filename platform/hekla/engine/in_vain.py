"""Lines for whose first nobody could be made to go: nobody goes for those behind it, until something is committed."""

from collections.abc import Callable, Hashable

from hekla.engine.gangs import Gang
from hekla.engine.points import Point
from hekla.engine.session import Session

_QUESTIONS = (Point.SPARED, Point.ALLOCATABLE, Point.PREEMPTIVE, Point.JOB_PIPELINED, Point.JOB_STARVING)


def likeness(session: Session, gang: Gang) -> Hashable | None:
    """What a job has in common with all that are like it; None where it is like no other, or was changed."""
    if gang.line is None or gang.job.uid in session.world.moved:
        return None
    return gang.line, session.class_of(session.examples(gang)[0])


class InVain:
    """For which jobs an action need not try. `point`: at which plugins say who may go.

    Where plugins ask for more than what jobs that are alike have in common, each of them is tried.
    """

    def __init__(self, session: Session, point: Point) -> None:
        self._session, self._woken = session, session.woken
        self._known: set[Hashable] = set()
        self._is_sure = not session.policy.follows_volcano and all(map(session.is_lasting, (point, *_QUESTIONS)))

    def unless(self, gang: Gang, attempt: Callable[[Gang], bool]) -> None:
        """Try, unless one like it was tried and nothing was committed since. `attempt`: False if nothing was."""
        if self._known and likeness(self._session, gang) in self._known:
            return
        if attempt(gang):
            self._known.clear()
        else:
            self._learn(gang)

    def _learn(self, gang: Gang) -> None:
        if self._woken != self._session.woken:
            self._woken = self._session.woken
            self._known.clear()
        elif self._is_sure and (key := likeness(self._session, gang)) is not None:
            self._known.add(key)
