"""The best set of cards within one node, by the strength of their links.

Cards that work together are as fast as the weakest link between two of them. So the set whose weakest link is strongest
is chosen; ties are broken by the sum of its links, then by the links of the remaining cards, then by the lowest cards.
"""

from functools import cache
from itertools import combinations

import numpy as np

from hekla.engine.columns import Vector

MOST = 16
"""If more cards are free, only the first ones are compared: 16 cards have 12,870 sets of eight."""


def best_set(links: Vector, free: tuple[int, ...], count: int) -> tuple[int, ...]:
    """The best `count` of the free cards. Raises ValueError if there are fewer."""
    free = free[: max(MOST, count)] if count <= MOST else free[:count]
    sets = _sets(len(free), count)
    within = links[np.ix_(free, free)]
    inside = within[sets[:, :, None], sets[:, None, :]]
    weakest = (inside + np.where(np.eye(count, dtype=bool), np.inf, 0.0)).min(axis=(1, 2))
    strength = inside.sum(axis=(1, 2))
    rest = within.sum() - 2 * within.sum(axis=1)[sets].sum(axis=1) + strength
    best = np.lexsort((np.arange(len(sets)), -rest, -strength, -weakest))[0]
    return tuple(free[at] for at in sets[best])


def quality(links: Vector, cards: tuple[int, ...]) -> float:
    """The weakest link of a set; 0 for a single card."""
    return min((float(links[a, b]) for a, b in combinations(cards, 2)), default=0.0)


@cache
def _sets(among: int, count: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.intp]]":
    found = np.array(list(combinations(range(among), count)), dtype=np.intp)
    if not len(found):
        raise ValueError("There are not as many cards.")
    return found.reshape(-1, count)
