"""Tentative placements and evictions of one gang: committed together or taken back together (`volcano-spec` §3.4)."""

from hekla.engine import shares
from hekla.engine.decisions import Eviction
from hekla.engine.gangs import Member
from hekla.engine.model import TaskStatus
from hekla.engine.session import Session

Step = tuple[Member, Eviction | None, str, TaskStatus]


class Statement:
    """What was tried so far. `marks` (`len`) name a point to go back to."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._done: list[tuple[Member, Eviction | None]] = []

    def __len__(self) -> int:
        return len(self._done)

    def place(self, member: Member, row: int, *, now: bool) -> None:
        """Give a task a place: room that is there now, or that will be."""
        self._session.place(member, row, TaskStatus.ALLOCATED if now else TaskStatus.PIPELINED)
        self._done.append((member, None))

    def evict(self, member: Member, action: str, for_job: str, plugins: tuple[str, ...] = ()) -> None:
        """Ask a task to go, by these plugins' leave."""
        eviction = Eviction(member.job.job.uid, member.task.uid, member.node, action, for_job, plugins)
        self._session.evict(member)
        self._done.append((member, eviction))

    def commit(self) -> None:
        """Bind what was allocated, evict what was asked to go. What is only promised is promised for this session."""
        for member, eviction in self._done:
            if eviction is None and member.status is TaskStatus.ALLOCATED:
                self._session.bind(member)
        self._session.evictions += shares.told(self._session, self._done)

    def save(self, mark: int = 0) -> list[Step]:
        """What was done since the mark, to do it again after `discard`."""
        return [(member, eviction, member.node, member.status) for member, eviction in self._done[mark:]]

    def recover(self, steps: list[Step]) -> None:
        """Do again what was saved."""
        for member, eviction, node, status in steps:
            if eviction is None:
                self.place(member, self._session.table.row_of[node], now=status is TaskStatus.ALLOCATED)
            else:
                self.evict(member, eviction.action, eviction.for_job, eviction.plugins)

    def discard(self, mark: int = 0) -> None:
        """Take back everything since the mark, the last first."""
        while len(self._done) > mark:
            member, eviction = self._done.pop()
            if eviction is None:
                self._session.unplace(member)
            else:
                self._session.unevict(member)
