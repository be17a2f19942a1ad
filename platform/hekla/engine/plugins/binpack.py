"""Fill nodes before opening new ones: the weighted used part of what the task asks for (`volcano-spec` §5.6)."""

import numpy as np

from hekla.engine.columns import Use, Vector, parts
from hekla.engine.gangs import Member
from hekla.engine.places import UseScorer
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session


def open_session(session: Session, option: PluginOption) -> None:
    """Score nodes, unless the plugin's weight is 0."""
    weight = option.whole("binpack.weight", 1)
    weights = _weights(session, option)
    if not weight:
        return

    def scorer(member: Member) -> UseScorer | None:
        wanted = (member.request > 0) & (weights > 0)
        request, factors, divisor = member.request[wanted], weights[wanted], weights[wanted].sum()

        def score(use: Use) -> Vector:
            whole = use.allocatable[:, wanted]
            after = use.used[:, wanted] + request
            total: Vector = (parts(after, whole, otherwise=0.0) * factors).sum(axis=1) / divisor * 100 * weight
            return np.where((after > whole).any(axis=1), 0.0, total)

        return score if divisor else None

    session.register(Point.USE_ORDER, option, scorer)


def _weights(session: Session, option: PluginOption) -> Vector:
    named = {"cpu": option.whole("binpack.cpu", 1), "memory": option.whole("binpack.memory", 1)}
    for name in str(option.arguments.get("binpack.resources", "")).split(","):
        if name.strip():
            named[name.strip()] = option.whole(f"binpack.resources.{name.strip()}", 1)
    return np.array([float(w if (w := named.get(name, 0)) >= 0 else 1) for name in session.dimensions.names])
