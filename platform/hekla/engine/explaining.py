"""Why gangs found no place, in numbers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from hekla.engine.decisions import Cause, Reason
from hekla.engine.gangs import Gang, Member
from hekla.engine.model import Queue
from hekla.engine.points import Point
from hekla.engine.session import Session


class Explanations:
    """The reasons of one session, as things stand when they are asked for."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def nowhere(self, gang: Gang, member: Member) -> Reason:
        """No node has a place for this task of the gang, and so for none of its role."""
        missing = missing_of(gang)
        tasks = max(missing, gang.in_role_pending(member.task.role) if missing <= 0 else 0)
        standing = self._session.places(member).standing(self._session.dimensions)
        cause = Cause.CAPACITY if standing.is_allowed else Cause.CONSTRAINT
        starts_alone = missing <= 0 or gang.job.min_available == 1
        return Reason(
            cause=cause if starts_alone or cause is Cause.CONSTRAINT else Cause.GANG,
            action="allocate",
            plugin="predicates" if cause is Cause.CONSTRAINT else "resources",
            code="no_node_fits",
            need=member.task.request,
            have=standing.most,
            tasks=tasks,
            nodes=standing.nodes,
            ever=standing.ever,
        )

    def over_share(self, gang: Gang, refused: Sequence[Member]) -> Reason:
        """The queue may not hold these tasks too.

        What is told is what the gang would need a place for to start, those that were refused first; once it runs, one
        task more.
        """
        seen = {id(member) for member in refused}
        others = [member for member in gang.pending() if id(member) not in seen]
        wanted = [*refused, *others][: max(missing_of(gang), 1)]
        return self._over_share(gang, wanted, len(refused))

    def over_share_alike(self, gang: Gang, example: Member) -> Reason:
        """As `over_share`, for a gang all of whose waiting tasks are as this one."""
        wanted, pending = max(missing_of(gang), 1), gang.pending_count
        return self._over_share(gang, [example] * min(wanted, pending), pending)

    def _over_share(self, gang: Gang, wanted: list[Member], tasks: int) -> Reason:
        return replace(why_no_room(self._session, self._session.queues[gang.job.queue], wanted), tasks=tasks)


def missing_of(gang: Gang) -> int:
    """How many tasks more must have a place, or the promise of one, for the gang to start."""
    return gang.job.min_available - gang.ready_count - gang.waiting_count


def why_no_room(session: Session, queue: Queue, members: list[Member]) -> Reason:
    """What the plugins say stands in the way of these tasks."""
    for answer in session.answers(Point.WHY_NOT_ALLOCATABLE):
        if reason := answer(queue, members):
            return cast(Reason, reason)
    return Reason(Cause.QUOTA, "allocate", "proportion", "queue_share_used", need=members[0].task.request)
