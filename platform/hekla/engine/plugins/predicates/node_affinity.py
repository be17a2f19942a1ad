"""NodeAffinity: the node selector and the required node affinity."""

from collections.abc import Iterator

from hekla.engine.gangs import Member
from hekla.engine.places import Refusal
from hekla.engine.session import Session


def refusals(session: Session, member: Member) -> Iterator[Refusal]:
    """Refuse nodes with other labels or names."""
    if member.task.node_selector or member.task.conditions.node_terms is not None:
        yield Refusal(~session.nodes.wanted_by(member.task), "label does not match")
