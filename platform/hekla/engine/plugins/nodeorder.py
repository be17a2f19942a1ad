"""How much a place is liked, by the Kubernetes scores of the same names, each 0 to 100 times its weight.

least requested: the mean free part of cpu and memory after the placement; most requested: the used part; balanced: how
much the placement brings the used parts of cpu, memory and GPUs together or apart, around 75 (`volcano-spec` §5.6).
"""

import numpy as np

from hekla.engine.columns import Use, Vector
from hekla.engine.gangs import Member
from hekla.engine.places import UseScorer
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_CPU_AND_MEMORY = slice(0, 2)
_PAIR = (0, 1)
_GPU = "nvidia.com/gpu"
_MIDDLE = 75
_TOLERANCE = 1e-9


def open_session(session: Session, option: PluginOption) -> None:
    """Score nodes."""
    least = option.whole("leastrequested.weight", 1)
    most = option.whole("mostrequested.weight", 0)
    balanced = option.whole("balancedresource.weight", 1)

    def scorer(member: Member) -> UseScorer:
        request = member.request[_CPU_AND_MEMORY]
        weighed = _weighed(session, member)

        def score(use: Use) -> Vector:
            whole, before = use.allocatable[:, _CPU_AND_MEMORY], use.expected[:, _CPU_AND_MEMORY]
            after = before + request
            total: Vector = np.zeros(len(whole))
            if least:
                total += least * _mean_part(whole - after, whole)
            if most:
                total += most * _mean_part(np.where(after <= whole, after, 0.0), whole)
            if balanced and request.any():
                total += balanced * _gain(
                    use.expected[:, weighed], member.request[weighed], use.allocatable[:, weighed]
                )
            return total

        return score

    session.register(Point.USE_ORDER, option, scorer)


def _mean_part(amounts: Vector, whole: Vector) -> Vector:
    """The mean of the two parts, each in whole hundredths, as a whole number."""
    parts = np.floor_divide(np.maximum(amounts, 0.0) * 100, whole, out=np.zeros_like(whole), where=whole > 0)
    halves: Vector = np.floor_divide(parts.sum(axis=1), 2)
    return halves


def _weighed(session: Session, member: Member) -> list[int]:
    """What is balanced: cpu and memory, and the whole GPUs of a task that asks for some."""
    gpus = [at for at, name in enumerate(session.dimensions.names) if name == _GPU and member.request[at] > 0]
    return [*_PAIR, *gpus]


def _gain(before: Vector, request: Vector, whole: Vector) -> Vector:
    """What the placement does to the balance: 75 where it changes nothing."""
    gain: Vector = np.floor(_MIDDLE + (_balance(before + request, whole) - _balance(before, whole)) / 2)
    return gain


def _balance(used: Vector, whole: Vector) -> Vector:
    """How alike the used parts are: 100 where alike, less by their standard deviation, as a whole number.

    GPUs count where the node has some.
    """
    parts = np.minimum(np.divide(used, whole, out=np.ones_like(whole), where=whole > 0), 1.0)
    spread = np.abs(parts[:, 0] - parts[:, 1]) / 2
    if parts.shape[1] > len(_PAIR):
        spread = np.where(whole[:, 2] > 0, parts.std(axis=1), spread)
    alike: Vector = np.floor(100 - spread * 100 + _TOLERANCE)
    return alike
