"""Amounts as mappings of names to numbers (`volcano-spec` §3.5)."""

from collections.abc import Iterable, Mapping

Amounts = dict[str, float]

EPSILON = 0.1
INFINITY = float("inf")


def plus(left: Mapping[str, float], right: Mapping[str, float], sign: int = 1) -> Amounts:
    return {name: left.get(name, 0.0) + sign * right.get(name, 0.0) for name in {**left, **right}}


def total(amounts: Iterable[Mapping[str, float]]) -> Amounts:
    found: Amounts = {}
    for each in amounts:
        found = plus(found, each)
    return found


def surplus(left: Mapping[str, float], right: Mapping[str, float]) -> Amounts:
    """The positive part of the difference."""
    return {name: max(0.0, amount) for name, amount in plus(left, right, -1).items()}


def at_most(left: Mapping[str, float], right: Mapping[str, float], default: float = 0.0) -> bool:
    """LessEqual, with tolerance, in the dimensions of the left one. `default`: for those missing on the right."""
    for name, amount in left.items():
        bound = right.get(name, default)
        if not (amount < bound or abs(amount - bound) < EPSILON):
            return False
    return True


def fits_request(left: Mapping[str, float], right: Mapping[str, float], request: Mapping[str, float]) -> bool:
    """LessEqual with dimensions: exact, only for requested resources, without pods."""
    return all(left.get(n, 0.0) <= right.get(n, INFINITY) for n, much in request.items() if much > 0 and n != "pods")


def share(part: Mapping[str, float], whole: Mapping[str, float]) -> float:
    """The largest ratio."""
    largest = 0.0
    for name in {**part, **whole}:
        have, of = part.get(name, 0.0), whole.get(name, 0.0)
        largest = max(largest, have / of if of else float(have > 0))
    return largest
