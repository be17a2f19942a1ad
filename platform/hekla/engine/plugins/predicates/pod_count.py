"""The number of pods a node may have.

Room in the dimension `pods` says the same for all that ask for something. Only Volcano also counts pods that are on
their way out against who is promised their place: it then evicts others from a node that is about to have room.
"""

from collections.abc import Callable, Iterator

from hekla.engine.columns import EPSILON, Rows
from hekla.engine.gangs import Member
from hekla.engine.model import TaskStatus
from hekla.engine.places import Refusal
from hekla.engine.session import Session


def refusals_at(session: Session, member: Member) -> Callable[[Rows], Iterator[Refusal]] | None:
    """Refuse full nodes. Tasks that ask for nothing are placed without a look at room, so they are always asked for."""
    if not member.best_effort and not (session.policy.follows_volcano and _some_leave(session)):
        return None
    table, pods = session.table, session.dimensions.names.index("pods")

    def refuse(rows: Rows) -> Iterator[Refusal]:
        full = table.allocatable[rows, pods] < table.expected[rows, pods] + EPSILON
        yield Refusal(full, "too many pods", is_final=False)

    return refuse


def _some_leave(session: Session) -> bool:
    leaving = session.census.count("leaving", lambda member: int(member.task.status is TaskStatus.RELEASING))
    return bool(leaving.any())
