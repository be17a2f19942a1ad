"""Scores by cpu and memory. Pipelined pods count; pods that the session evicts do not.

least requested: the mean free part after the placement; most requested: the mean used part. Both add a default for
containers without requests. balanced: how much the placement makes the used parts more or less equal, around 75.
"""

from hekla.engine.job_info import PodInfo
from hekla.engine.node_columns import (
    Column,
    ColumnScorer,
    NodeColumns,
    choose,
    floor,
    fraction,
    larger,
    smaller,
    square_root,
)
from hekla.engine.session import Session

_CPU_AND_MEMORY = slice(0, 2)
_PAIR = (0, 1)
_GPU = "nvidia.com/gpu"
_MIDDLE = 75


def count_surplus(session: Session) -> None:
    """Track what scorers count on each node on top of requests."""
    surplus = session.table.nonzero_surplus

    def update(pod: PodInfo, row: int, sign: int) -> None:
        surplus[row] += pod.nonzero_surplus if sign > 0 else -pod.nonzero_surplus

    session.on_change.append(update)


def least(_session: Session, pod: PodInfo) -> ColumnScorer:
    """More free resources score higher."""
    counted = _counted(pod)

    def score(nodes: NodeColumns) -> Column:
        return _mean_part(nodes, [larger(nodes.allocatable[at] - _after(nodes, at, counted), 0.0) for at in _PAIR])

    return score


def most(_session: Session, pod: PodInfo) -> ColumnScorer:
    """More used resources score higher."""
    counted = _counted(pod)

    def score(nodes: NodeColumns) -> Column:
        return _mean_part(nodes, [smaller(_after(nodes, at, counted), nodes.allocatable[at]) for at in _PAIR])

    return score


def _counted(pod: PodInfo) -> list[float]:
    """What the pod counts for: cpu and memory."""
    amounts: list[float] = (pod.request[_CPU_AND_MEMORY] + pod.nonzero_surplus).tolist()
    return amounts


def _after(nodes: NodeColumns, at: int, counted: list[float]) -> Column:
    """What counts for a resource after the placement."""
    return nodes.expected[at] + nodes.nonzero_surplus[at] + counted[at]


def _mean_part(nodes: NodeColumns, amounts: list[Column]) -> Column:
    """The mean of the parts in whole per cent, rounded down; resources that a node lacks are left out."""
    cpu, memory = (nodes.allocatable[at] for at in _PAIR)
    hundredths = [floor(fraction(amounts[at] * 100, nodes.allocatable[at], otherwise=0.0)) for at in _PAIR]
    kinds = larger((cpu != 0) + 0.0 + (memory != 0), 1.0)
    return floor((hundredths[0] + hundredths[1]) / kinds)


def balanced(session: Session, pod: PodInfo) -> ColumnScorer | None:
    """More equal used parts score higher: of cpu, memory, and GPUs if the pod requests some."""
    names, request = session.dimensions.names, pod.request.tolist()
    weighed = [*_PAIR, *(at for at, name in enumerate(names) if name == _GPU and request[at] > 0)]
    if not any(request[at] for at in _PAIR):
        return None

    def score(nodes: NodeColumns) -> Column:
        whole, before = [nodes.allocatable[at] for at in weighed], [nodes.expected[at] for at in weighed]
        after = [used + request[at] for used, at in zip(before, weighed, strict=True)]
        return floor(_MIDDLE + (_balance(after, whole) - _balance(before, whole)) / 2)

    return score


def _balance(used: list[Column], whole: list[Column]) -> Column:
    """How equal the used parts are: 100 if equal, less by their standard deviation, as a whole number.

    GPUs count if the node has some.
    """
    pairs = zip(used, whole, strict=True)
    filled = [smaller(fraction(amount, there, otherwise=1.0), 1.0) for amount, there in pairs]
    apart = larger(filled[0] - filled[1], filled[1] - filled[0]) / 2
    if len(filled) > len(_PAIR):
        apart = choose(whole[-1] > 0, _standard_deviation(*filled), apart)
    return floor((1 - apart) * 100)


def _standard_deviation(one: Column, two: Column, three: Column) -> Column:
    mean = (one + two + three) / 3
    apart = [part - mean for part in (one, two, three)]
    return square_root((apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2]) / 3)
