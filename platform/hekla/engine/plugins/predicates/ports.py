"""NodePorts: ports of the machine itself that another pod there has already."""

from collections.abc import Callable, Iterator

from hekla.engine.columns import Rows
from hekla.engine.conditions import HostPort
from hekla.engine.gangs import Member
from hekla.engine.nodeindex import Counts
from hekla.engine.places import Refusal
from hekla.engine.session import Session


def refusals_at(session: Session, member: Member) -> Callable[[Rows], Iterator[Refusal]] | None:
    """Refuse nodes where a wanted port is taken."""
    taken = [_users(session, port) for port in member.task.conditions.ports]
    if not taken:
        return None

    def refuse(rows: Rows) -> Iterator[Refusal]:
        for users in taken:
            yield Refusal(users[rows] > 0, "port in use", is_final=False)

    return refuse


def _users(session: Session, port: HostPort) -> Counts:
    def uses(member: Member) -> int:
        return int(any(port.conflicts_with(other) for other in member.task.conditions.ports))

    return session.census.count(("port", port), uses)
