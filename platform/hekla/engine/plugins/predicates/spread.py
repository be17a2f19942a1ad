"""PodTopologySpread, DoNotSchedule: limits how many more matching pods a label value has than the one with fewest.

Nodes count if they have the labels of all such constraints and, depending on the constraint, match the pod's node
affinity and tolerations. With fewer values than `min_domains`, the minimum is 0.
"""

from collections.abc import Callable, Iterator

import numpy as np

from hekla.engine.columns import Mask
from hekla.engine.constraints import TopologySpreadConstraint
from hekla.engine.job_info import PodInfo
from hekla.engine.node_fit import Refusal
from hekla.engine.session import Session

Check = Callable[[], Refusal]


def predicate(session: Session, pod: PodInfo) -> Callable[[], Iterator[Refusal]] | None:
    """Refuse nodes without the labels, and nodes that would have too many matching pods."""
    hard = [constraint for constraint in pod.spec.constraints.topology_spread if constraint.is_hard]
    if not hard:
        return None
    labelled = np.logical_and.reduce([session.node_index.domain(one.topology_key).has_label for one in hard])
    checks = [
        _check(session, pod, one, labelled & session.node_index.eligible_for_spread(pod.spec, one)) for one in hard
    ]
    lacking = [Refusal(~session.node_index.domain(one.topology_key).has_label, "no label to spread by") for one in hard]

    def refuse() -> Iterator[Refusal]:
        yield from lacking
        yield from (check() for check in checks)

    return refuse


def _check(session: Session, pod: PodInfo, constraint: TopologySpreadConstraint, rows: Mask) -> Check:
    domain, pods = (
        session.node_index.domain(constraint.topology_key),
        session.topology_counts.matching_not_terminating(constraint.selector),
    )
    present = np.unique(domain.codes[rows])
    itself = int(constraint.selector in pod.matching_selectors)
    has_few = len(present) < constraint.min_domains

    def refuse() -> Refusal:
        sums = domain.sum_by_value(np.where(rows, pods, 0))
        least = 0 if has_few or not len(present) else int(sums[present].min())
        skew = domain.per_row(sums) + itself - least
        return Refusal(domain.has_label & (skew > constraint.max_skew), "uneven spread", is_unresolvable=False)

    return refuse
