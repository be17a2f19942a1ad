"""Sets of CPUs as Linux and kubelets write them: `0-3,8`. Standard library only, because shims of pods use it."""

from collections.abc import Iterable, Iterator
from itertools import groupby

MAX_CPUS = 4096


def parse_cpus(text: str) -> frozenset[int]:
    """The numbers in such a text; none in an empty one. Raises ValueError."""
    return frozenset(cpu for part in text.strip().split(",") if part for cpu in _range(part))


def format_cpus(cpus: Iterable[int]) -> str:
    """The text for these numbers."""
    runs = groupby(enumerate(sorted(set(cpus))), key=lambda pair: pair[1] - pair[0])
    found = ([cpu for _place, cpu in run] for _key, run in runs)
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in found)


def _range(part: str) -> Iterator[int]:
    first, _, last = part.partition("-")
    low, high = int(first), int(last or first)
    if not 0 <= low <= high < MAX_CPUS:
        raise ValueError("a set of CPUs is not valid")
    yield from range(low, high + 1)
