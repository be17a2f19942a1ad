"""NodeAffinity: the weights of the preferred terms that a node meets."""

from collections.abc import Callable

import numpy as np

from hekla.engine.columns import Rows, Vector
from hekla.engine.gangs import Member
from hekla.engine.plugins.nodeorder.scale import to_best
from hekla.engine.session import Session


def preferred(session: Session, member: Member) -> Callable[[Rows], Vector] | None:
    """The nodes that meet most become 100."""
    terms = member.task.conditions.preferred_nodes
    if not terms:
        return None
    raw: Vector = np.zeros(len(session.table))
    for weight, term in terms:
        raw += weight * session.nodes.in_term(term)
    return lambda rows: to_best(raw[rows])
