"""How much a place is liked: Kubernetes' scorers of the same names (`volcano-spec` §5.6).

One file a scorer. Each gives whole numbers from 0 to 100, times its weight `<name>.weight`; weight 0 leaves it out.
Some compare the nodes that come into question with each other and bring the best of them to 100.
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from hekla.engine.columns import Rows, Use, Vector
from hekla.engine.gangs import Member
from hekla.engine.plugins.nodeorder import images, node_affinity, pod_affinity, resources, spread, taints
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_About = TypeVar("_About", Use, Rows)
_Factory = Callable[[Session, Member], Callable[[_About], Vector] | None]
_Weighted = list[tuple[int, _Factory[_About]]]


def open_session(session: Session, option: PluginOption) -> None:
    """Score nodes."""

    def weighted(scorers: dict[str, tuple[int, _Factory[_About]]]) -> _Weighted[_About]:
        found = ((option.whole(f"{name}.weight", default), factory) for name, (default, factory) in scorers.items())
        return [(weight, factory) for weight, factory in found if weight]

    resources.count_surplus(session)
    alone: _Weighted[Use] = weighted({
        "leastrequested": (1, resources.least),
        "mostrequested": (0, resources.most),
        "balancedresource": (1, resources.balanced),
        "tainttoleration": (3, taints.alike),
    })  # fmt: skip
    compared: _Weighted[Rows] = weighted({
        "imagelocality": (1, images.local),
        "nodeaffinity": (2, node_affinity.preferred),
        "podaffinity": (2, pod_affinity.Preferences(session).preferred),
        "tainttoleration": (3, taints.preferred),
        "podtopologyspread": (2, spread.preferred),
    })  # fmt: skip
    session.register(Point.USE_ORDER, option, lambda member: _sum(session, member, alone))
    session.register(Point.WIDE_NODE_ORDER, option, lambda member, _table: _sum(session, member, compared))


def _sum(session: Session, member: Member, weighted: _Weighted[_About]) -> Callable[[_About], Vector] | None:
    scorers = [(weight, scorer) for weight, factory in weighted if (scorer := factory(session, member)) is not None]
    if not scorers:
        return None

    def score(about: _About) -> Vector:
        total: Vector = np.sum([weight * scorer(about) for weight, scorer in scorers], axis=0)
        return total

    return score
