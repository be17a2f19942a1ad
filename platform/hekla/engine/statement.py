"""A gang's tentative placements: committed together or taken back together."""

from hekla.engine.decisions import Bind
from hekla.engine.gangs import Gang, Member
from hekla.engine.model import TaskStatus
from hekla.engine.session import Session


class Statement:
    """What one turn of a gang did so far."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._placed: list[Member] = []

    def place(self, member: Member, row: int, *, now: bool) -> None:
        """Give a task a place: room that is there now, or that will be."""
        self._session.place(member, row, TaskStatus.ALLOCATED if now else TaskStatus.PIPELINED)
        self._placed.append(member)

    def commit(self) -> None:
        """Bind what was allocated."""
        for member in self._placed:
            if member.status is TaskStatus.ALLOCATED:
                bind(self._session, member)

    def discard(self) -> None:
        """Take everything back, the last first."""
        for member in reversed(self._placed):
            self._session.unplace(member)
        self._placed.clear()


def bind(session: Session, member: Member) -> None:
    """The placement is final."""
    gang: Gang = member.job
    session.binds.append(Bind(gang.job.uid, member.task.uid, member.node))
    gang.move(member, TaskStatus.BINDING, member.node)
