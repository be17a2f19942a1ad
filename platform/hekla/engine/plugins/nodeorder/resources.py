"""Scores by cpu and memory. Pipelined pods count; pods that the session evicts do not.

least requested: the mean free part after the placement; most requested: the mean used part. Both add a default for
containers without requests. balanced: how much the placement makes the used parts more or less equal, around 75.
"""

import numpy as np

from hekla.engine.columns import NodeResources, Vector, fractions
from hekla.engine.job_info import PodInfo
from hekla.engine.node_fit import ResourceScorer
from hekla.engine.session import Session

_CPU_AND_MEMORY = slice(0, 2)
_PAIR = (0, 1)
_GPU = "nvidia.com/gpu"
_MIDDLE = 75


def count_surplus(session: Session) -> None:
    """Track what scorers count on each node on top of requests."""
    surplus = session.table.nonzero_surplus

    def update(pod: PodInfo, row: int, sign: int) -> None:
        surplus[row] += sign * pod.nonzero_surplus

    session.on_change.append(update)


def least(_session: Session, pod: PodInfo) -> ResourceScorer:
    """More free resources score higher."""

    def score(resources: NodeResources) -> Vector:
        whole, after = resources.allocatable[:, _CPU_AND_MEMORY], _counted_after(resources, pod)
        return _mean_part(np.maximum(whole - after, 0.0), whole)

    return score


def most(_session: Session, pod: PodInfo) -> ResourceScorer:
    """More used resources score higher."""

    def score(resources: NodeResources) -> Vector:
        whole = resources.allocatable[:, _CPU_AND_MEMORY]
        return _mean_part(np.minimum(_counted_after(resources, pod), whole), whole)

    return score


def _counted_after(resources: NodeResources, pod: PodInfo) -> Vector:
    mine = pod.request[_CPU_AND_MEMORY] + pod.nonzero_surplus
    after: Vector = resources.expected[:, _CPU_AND_MEMORY] + resources.nonzero_surplus + mine
    return after


def _mean_part(amounts: Vector, whole: Vector) -> Vector:
    """The mean of the parts in whole per cent, rounded down; resources that a node lacks are left out."""
    hundredths = np.floor(fractions(amounts * 100, whole, otherwise=0.0))
    kinds = np.maximum(np.count_nonzero(whole, axis=1), 1)
    means: Vector = np.floor((hundredths[:, 0] + hundredths[:, 1]) / kinds)
    return means


def balanced(session: Session, pod: PodInfo) -> ResourceScorer | None:
    """More equal used parts score higher: of cpu, memory, and GPUs if the pod requests some."""
    names = session.dimensions.names
    gpus = [at for at, name in enumerate(names) if name == _GPU and pod.request[at] > 0]
    weighed = [*_PAIR, *gpus]
    if not pod.request[_CPU_AND_MEMORY].any():
        return None

    def score(resources: NodeResources) -> Vector:
        whole, before = resources.allocatable[:, weighed], resources.expected[:, weighed]
        change = _balance(before + pod.request[weighed], whole) - _balance(before, whole)
        found: Vector = np.floor(_MIDDLE + change / 2)
        return found

    return score


def _balance(used: Vector, whole: Vector) -> Vector:
    """How equal the used parts are: 100 if equal, less by their standard deviation, as a whole number.

    GPUs count if the node has some.
    """
    filled = np.minimum(fractions(used, whole, otherwise=1.0), 1.0)
    apart = np.abs(filled[:, 0] - filled[:, 1]) / 2
    if filled.shape[1] > len(_PAIR):
        apart = np.where(whole[:, -1] > 0, filled.std(axis=1), apart)
    alike: Vector = np.floor((1 - apart) * 100)
    return alike
