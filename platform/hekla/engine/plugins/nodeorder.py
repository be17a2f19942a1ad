"""How much a place is liked, by the Kubernetes scores of the same names, each 0 to 100 times its weight.

least requested: the mean free part of cpu and memory after the placement; most requested: the used part; balanced: how
much the placement brings the used parts of cpu and memory together or apart, around 75 (`volcano-spec` §5.6).
"""

import numpy as np

from hekla.engine.columns import Use, Vector
from hekla.engine.gangs import Member
from hekla.engine.places import UseScorer
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_CPU_AND_MEMORY = slice(0, 2)
_MIDDLE = 75
_TOLERANCE = 1e-9


def open_session(session: Session, option: PluginOption) -> None:
    """Score nodes."""
    least = option.whole("leastrequested.weight", 1)
    most = option.whole("mostrequested.weight", 0)
    balanced = option.whole("balancedresource.weight", 1)

    def scorer(member: Member) -> UseScorer:
        request = member.request[_CPU_AND_MEMORY]

        def score(use: Use) -> Vector:
            whole, before = use.allocatable[:, _CPU_AND_MEMORY], use.expected[:, _CPU_AND_MEMORY]
            after = before + request
            total: Vector = np.zeros(len(whole))
            if least:
                total += least * _mean_part(whole - after, whole)
            if most:
                total += most * _mean_part(np.where(after <= whole, after, 0.0), whole)
            if balanced and request.any():
                total += balanced * np.floor(_MIDDLE + (_balance(after, whole) - _balance(before, whole)) / 2)
            return total

        return score

    session.register(Point.USE_ORDER, option, scorer)


def _mean_part(amounts: Vector, whole: Vector) -> Vector:
    """The mean of the two parts, each in whole hundredths, as a whole number."""
    parts = np.floor_divide(np.maximum(amounts, 0.0) * 100, whole, out=np.zeros_like(whole), where=whole > 0)
    halves: Vector = np.floor_divide(parts.sum(axis=1), 2)
    return halves


def _balance(used: Vector, whole: Vector) -> Vector:
    """How alike the used parts of cpu and memory are: 100 where alike, at least 50, as a whole number."""
    parts = np.minimum(np.divide(used, whole, out=np.ones_like(whole), where=whole > 0), 1.0)
    alike: Vector = np.floor(100 - np.abs(parts[:, 0] - parts[:, 1]) * 50 + _TOLERANCE)
    return alike
