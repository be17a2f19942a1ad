"""PodTopologySpread, DoNotSchedule: no value of a label may have many more of these pods than the one with fewest.

Counted are nodes that have the labels of all such constraints and, as a constraint says, that the pod could go to by
its node affinity and tolerations. With fewer values than `min_domains` the fewest count as none.
"""

from collections.abc import Callable, Iterator

import numpy as np

from hekla.engine.columns import Mask
from hekla.engine.conditions import Spread
from hekla.engine.gangs import Member
from hekla.engine.places import Refusal
from hekla.engine.session import Session

Ask = Callable[[], Refusal]


def refusals_now(session: Session, member: Member) -> Callable[[], Iterator[Refusal]] | None:
    """Refuse nodes without the labels, and those that would have too many."""
    hard = [constraint for constraint in member.task.conditions.spread if constraint.is_hard]
    if not hard:
        return None
    labelled = np.logical_and.reduce([session.nodes.domain(one.topology_key).has for one in hard])
    asks = [_ask(session, member, one, labelled & session.nodes.counted_for(member.task, one)) for one in hard]
    lacking = [Refusal(~session.nodes.domain(one.topology_key).has, "no label to spread by") for one in hard]

    def refuse() -> Iterator[Refusal]:
        yield from lacking
        yield from (ask() for ask in asks)

    return refuse


def _ask(session: Session, member: Member, constraint: Spread, rows: Mask) -> Ask:
    domain, pods = session.nodes.domain(constraint.topology_key), session.census.staying(constraint.pods)
    present = np.unique(domain.codes[rows])
    itself = int(constraint.pods in member.seen_by)
    has_few = len(present) < constraint.min_domains

    def refuse() -> Refusal:
        sums = domain.sums(np.where(rows, pods, 0))
        least = 0 if has_few or not len(present) else int(sums[present].min())
        skew = domain.spread(sums) + itself - least
        return Refusal(domain.has & (skew > constraint.max_skew), "uneven spread", is_final=False)

    return refuse
