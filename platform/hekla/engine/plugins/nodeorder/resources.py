"""Scores by cpu and memory. Pipelined pods count; pods that the session evicts do not.

least requested: the mean free part after the placement; most requested: the mean used part. Both add a default for
containers without requests. balanced: how much the placement makes the used parts more or less equal, around 75.
"""

from functools import cache

from hekla.engine.job_info import PodInfo
from hekla.engine.node_columns import Arithmetic, Column, ColumnScorer, NodeColumns
from hekla.engine.session import Session

_PAIR = (0, 1)
_GPU = "nvidia.com/gpu"
_MIDDLE = 75


def count_surplus(session: Session) -> None:
    """Track what scorers count on each node on top of requests."""
    surplus = session.table.nonzero_surplus

    def update(pod: PodInfo, row: int, sign: int) -> None:
        changed = surplus[row]
        changed += pod.nonzero_surplus if sign > 0 else -pod.nonzero_surplus

    session.on_change.append(update)


def least(_session: Session, _pod: PodInfo) -> ColumnScorer:
    """More free resources score higher."""
    return _free_part


def _free_part(nodes: NodeColumns) -> Column:
    cpu, memory = nodes.allocatable[0] - _after(nodes, 0), nodes.allocatable[1] - _after(nodes, 1)
    return _mean_part(nodes, nodes.arithmetic.larger(cpu, 0.0), nodes.arithmetic.larger(memory, 0.0))


def most(_session: Session, _pod: PodInfo) -> ColumnScorer:
    """More used resources score higher."""
    return _used_part


def _used_part(nodes: NodeColumns) -> Column:
    smaller, whole = nodes.arithmetic.smaller, nodes.allocatable
    return _mean_part(nodes, smaller(_after(nodes, 0), whole[0]), smaller(_after(nodes, 1), whole[1]))


def _after(nodes: NodeColumns, at: int) -> Column:
    """What counts for a resource after the placement."""
    return nodes.expected[at] + nodes.nonzero_surplus[at] + nodes.requests.counted[at]


def _mean_part(nodes: NodeColumns, cpu: Column, memory: Column) -> Column:
    """The mean of the parts in whole per cent, rounded down; resources that a node lacks are left out."""
    floor, whole = nodes.arithmetic.floor, nodes.allocatable
    total = floor(nodes.part(0, cpu * 100, 0.0)) + floor(nodes.part(1, memory * 100, 0.0))
    if nodes.has_everywhere(0) and nodes.has_everywhere(1):
        return floor(total / 2.0)  # type: ignore[no-any-return]
    kinds = nodes.arithmetic.larger((whole[0] != 0) + 0.0 + (whole[1] != 0), 1.0)
    return floor(total / kinds)  # type: ignore[no-any-return]


def balanced(session: Session, pod: PodInfo) -> ColumnScorer | None:
    """More equal used parts score higher: of cpu, memory, and GPUs if the pod requests some."""
    names, request = session.dimensions.names, pod.request.tolist()
    if not any(request[at] for at in _PAIR):
        return None
    return _balance_change((*_PAIR, *(at for at, name in enumerate(names) if name == _GPU and request[at] > 0)))


@cache
def _balance_change(weighed: tuple[int, ...]) -> ColumnScorer:
    def score(nodes: NodeColumns) -> Column:
        change = _balance(nodes, weighed, is_after=True) - _balance(nodes, weighed, is_after=False)
        return nodes.arithmetic.floor(_MIDDLE + change / 2)  # type: ignore[no-any-return]

    return score


def _balance(nodes: NodeColumns, weighed: tuple[int, ...], *, is_after: bool) -> Column:
    """How equal the used parts are: 100 if equal, less by their standard deviation, as a whole number.

    GPUs count if the node has some. `is_after`: after the placement.
    """
    cpu, memory = _filled_part(nodes, 0, is_after), _filled_part(nodes, 1, is_after)
    arithmetic = nodes.arithmetic
    apart = arithmetic.larger(cpu - memory, memory - cpu) / 2
    for at in weighed[len(_PAIR) :]:
        deviation = _standard_deviation(arithmetic, cpu, memory, _filled_part(nodes, at, is_after))
        apart = arithmetic.choose(nodes.allocatable[at] > 0, deviation, apart)
    return arithmetic.floor((1 - apart) * 100)  # type: ignore[no-any-return]


def _filled_part(nodes: NodeColumns, at: int, is_after: bool) -> Column:
    used = nodes.expected[at] + nodes.requests.amounts[at] if is_after else nodes.expected[at]
    return nodes.arithmetic.smaller(nodes.part(at, used, 1.0), 1.0)  # type: ignore[no-any-return]


def _standard_deviation(arithmetic: Arithmetic, one: Column, two: Column, three: Column) -> Column:
    mean = (one + two + three) / 3
    apart = [part - mean for part in (one, two, three)]
    squares = apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2]
    return arithmetic.square_root(squares / 3)  # type: ignore[no-any-return]
