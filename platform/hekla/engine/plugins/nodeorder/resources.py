"""Scores by cpu and memory. Pipelined pods count; pods that the session evicts do not.

least requested: the mean free part after the placement; most requested: the mean used part. Both add a default for
containers without requests. balanced: how much the placement makes the used parts more or less equal, around 75.
"""

from functools import cache

from hekla.engine.job_info import PodInfo
from hekla.engine.node_columns import (
    Column,
    ColumnScorer,
    NodeColumns,
    choose,
    floor,
    larger,
    smaller,
    square_root,
)
from hekla.engine.session import Session

_PAIR = (0, 1)
_GPU = "nvidia.com/gpu"
_MIDDLE = 75


def count_surplus(session: Session) -> None:
    """Track what scorers count on each node on top of requests."""
    surplus = session.table.nonzero_surplus

    def update(pod: PodInfo, row: int, sign: int) -> None:
        surplus[row] += pod.nonzero_surplus if sign > 0 else -pod.nonzero_surplus

    session.on_change.append(update)


def least(_session: Session, _pod: PodInfo) -> ColumnScorer:
    """More free resources score higher."""
    return _free_part


def _free_part(nodes: NodeColumns) -> Column:
    return _mean_part(nodes, [larger(nodes.allocatable[at] - _after(nodes, at), 0.0) for at in _PAIR])


def most(_session: Session, _pod: PodInfo) -> ColumnScorer:
    """More used resources score higher."""
    return _used_part


def _used_part(nodes: NodeColumns) -> Column:
    return _mean_part(nodes, [smaller(_after(nodes, at), nodes.allocatable[at]) for at in _PAIR])


def _after(nodes: NodeColumns, at: int) -> Column:
    """What counts for a resource after the placement."""
    return nodes.expected[at] + nodes.nonzero_surplus[at] + nodes.requests.counted[at]


def _mean_part(nodes: NodeColumns, amounts: list[Column]) -> Column:
    """The mean of the parts in whole per cent, rounded down; resources that a node lacks are left out."""
    cpu, memory = (nodes.allocatable[at] for at in _PAIR)
    hundredths = [floor(nodes.part(at, amounts[at] * 100, otherwise=0.0)) for at in _PAIR]
    has_both = nodes.has_everywhere(0) and nodes.has_everywhere(1)
    kinds = 2.0 if has_both else larger((cpu != 0) + 0.0 + (memory != 0), 1.0)
    return floor((hundredths[0] + hundredths[1]) / kinds)


def balanced(session: Session, pod: PodInfo) -> ColumnScorer | None:
    """More equal used parts score higher: of cpu, memory, and GPUs if the pod requests some."""
    names, request = session.dimensions.names, pod.request.tolist()
    if not any(request[at] for at in _PAIR):
        return None
    return _balance_change((*_PAIR, *(at for at, name in enumerate(names) if name == _GPU and request[at] > 0)))


@cache
def _balance_change(weighed: tuple[int, ...]) -> ColumnScorer:
    def score(nodes: NodeColumns) -> Column:
        before = [nodes.expected[at] for at in weighed]
        after = [used + nodes.requests.amounts[at] for used, at in zip(before, weighed, strict=True)]
        return floor(_MIDDLE + (_balance(nodes, weighed, after) - _balance(nodes, weighed, before)) / 2)

    return score


def _balance(nodes: NodeColumns, weighed: tuple[int, ...], used: list[Column]) -> Column:
    """How equal the used parts are: 100 if equal, less by their standard deviation, as a whole number.

    GPUs count if the node has some.
    """
    filled = [smaller(nodes.part(at, amount, otherwise=1.0), 1.0) for at, amount in zip(weighed, used, strict=True)]
    apart = larger(filled[0] - filled[1], filled[1] - filled[0]) / 2
    if len(filled) > len(_PAIR):
        apart = choose(nodes.allocatable[weighed[-1]] > 0, _standard_deviation(*filled), apart)
    return floor((1 - apart) * 100)


def _standard_deviation(one: Column, two: Column, three: Column) -> Column:
    mean = (one + two + three) / 3
    apart = [part - mean for part in (one, two, three)]
    return square_root((apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2]) / 3)
