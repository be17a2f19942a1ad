"""Who waits in each queue, in the order of their turns: one by one, and those that are alike in lines."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain

from hekla.engine.gangs import Gang
from hekla.engine.heap import Heap, Ranked, Waiting
from hekla.engine.points import Point
from hekla.engine.session import Session

Line = list[Gang]


def standing(session: Session) -> tuple[list[Gang], list[Line]]:
    """Those that must be looked at one by one, and the lines of those that are the same to every plugin."""
    if not _knows_lines(session):
        return [*session.candidates], []
    world = session.world
    stepped_out = (gang for gang in world.moved.values() if gang.line is not None)
    lines = (line.without(world.moved) for line in world.lines if line.queue in session.queues)
    return [*world.singles.values(), *stepped_out], [line for line in lines if line]


def _knows_lines(session: Session) -> bool:
    if session.policy.follows_volcano or session.answers(Point.TASK_CLASS):
        return False
    return session.is_lasting(Point.JOB_ORDER) and session.is_lasting(Point.JOB_VALID)


def by_queue(session: Session, singles: Iterable[Gang], lines: Iterable[Line] = ()) -> dict[str, Waiting[Gang]]:
    """The first of each queue comes out first."""
    alone: dict[str, list[Gang]] = defaultdict(list)
    for gang in singles:
        alone[gang.job.queue].append(gang)
    alike: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        alike[line[0].job.queue].append(line)
    return {name: in_order(session, alone[name], alike[name]) for name in dict.fromkeys(chain(alone, alike))}


def in_order(session: Session, singles: Iterable[Gang], lines: Iterable[Line] = ()) -> Waiting[Gang]:
    """The first comes out first, as jobs rank at the beginning; where plugins let ranks shift, as they do then."""
    if session.policy.follows_volcano or session.ranks_shift:
        return Heap(session.job_before, singles)
    return Ranked(session.rank, singles, lines)
