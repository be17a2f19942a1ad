"""NodeUnschedulable: nodes that were closed, unless the pod tolerates the taint that stands for it."""

from collections.abc import Iterator

from hekla.engine.gangs import Member
from hekla.engine.nodeindex import UNSCHEDULABLE, is_borne
from hekla.engine.places import Refusal
from hekla.engine.session import Session


def refusals(session: Session, member: Member) -> Iterator[Refusal]:
    """Refuse closed nodes."""
    if not is_borne(UNSCHEDULABLE, member.task.tolerations):
        yield Refusal(session.nodes.unschedulable, "not schedulable")
