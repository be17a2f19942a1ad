"""TaintToleration: taints that keep pods away (NoSchedule, NoExecute) and that the pod does not tolerate."""

from collections.abc import Iterator

from hekla.engine.gangs import Member
from hekla.engine.places import Refusal
from hekla.engine.session import Session


def refusals(session: Session, member: Member) -> Iterator[Refusal]:
    """Refuse nodes, taint by taint."""
    for taint, rows in session.nodes.repelling(member.task.tolerations).items():
        yield Refusal(rows, f"taint {taint.key}")
