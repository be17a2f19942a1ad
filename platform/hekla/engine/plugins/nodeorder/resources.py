"""Scores by cpu and memory. Pods promised a place count, and those that the session evicts do not.

least requested: the mean free part after the placement; most requested: the mean used part; both reckon a little for
containers that ask for nothing. balanced: how much the placement brings the used parts together or apart, around 75.
"""

import numpy as np

from hekla.engine.columns import Use, Vector
from hekla.engine.gangs import Member
from hekla.engine.places import UseScorer
from hekla.engine.session import Session

_CPU_AND_MEMORY = slice(0, 2)
_MIDDLE = 75


def count_surplus(session: Session) -> None:
    """Keep what scorers count on each node beyond what is asked for."""
    surplus = session.table.surplus
    surplus[:] = 0.0
    for row, residents in enumerate(session.residents):
        for member in residents.values():
            surplus[row] += member.surplus

    def follow(member: Member, row: int, sign: int) -> None:
        surplus[row] += sign * member.surplus

    session.on_change.append(follow)


def least(_session: Session, member: Member) -> UseScorer:
    """The more is free, the better."""

    def score(use: Use) -> Vector:
        whole, after = use.allocatable[:, _CPU_AND_MEMORY], _counted_after(use, member)
        return _mean_part(np.maximum(whole - after, 0.0), whole)

    return score


def most(_session: Session, member: Member) -> UseScorer:
    """The more is used, the better."""

    def score(use: Use) -> Vector:
        whole = use.allocatable[:, _CPU_AND_MEMORY]
        return _mean_part(np.minimum(_counted_after(use, member), whole), whole)

    return score


def _counted_after(use: Use, member: Member) -> Vector:
    mine = member.request[_CPU_AND_MEMORY] + member.surplus
    after: Vector = use.expected[:, _CPU_AND_MEMORY] + use.surplus + mine
    return after


def _mean_part(amounts: Vector, whole: Vector) -> Vector:
    """The mean of the parts, each in whole hundredths, as a whole number. What a node has none of is left out."""
    parts = np.floor_divide(amounts * 100, whole, out=np.zeros_like(whole), where=whole > 0)
    means: Vector = np.floor_divide(parts.sum(axis=1), np.maximum((whole > 0).sum(axis=1), 1))
    return means


def balanced(_session: Session, member: Member) -> UseScorer | None:
    """The more alike the used parts of cpu and memory become, the better."""
    request = member.request[_CPU_AND_MEMORY]
    if not request.any():
        return None

    def score(use: Use) -> Vector:
        whole, before = use.allocatable[:, _CPU_AND_MEMORY], use.expected[:, _CPU_AND_MEMORY]
        change = _balance(before + request, whole) - _balance(before, whole)
        found: Vector = np.floor(_MIDDLE + change / 2)
        return found

    return score


def _balance(used: Vector, whole: Vector) -> Vector:
    """How alike the used parts of cpu and memory are: 100 where alike, at least 50, as a whole number."""
    parts = np.minimum(np.divide(used, whole, out=np.ones_like(whole), where=whole > 0), 1.0)
    alike: Vector = np.floor((1 - np.abs(parts[:, 0] - parts[:, 1]) / 2) * 100)
    return alike
