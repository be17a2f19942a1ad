"""From raw sums to whole numbers between 0 and 100, as Kubernetes does."""

import numpy as np

from hekla.engine.columns import Vector

BEST = 100


def to_best(raw: Vector) -> Vector:
    """The largest becomes 100; nothing stays nothing."""
    most = raw.max(initial=0)
    scaled: Vector = np.floor_divide(raw * BEST, most) if most > 0 else np.zeros(len(raw))
    return scaled


def between(raw: Vector) -> Vector:
    """The smallest becomes 0, the largest 100; where all are equal, all become 0."""
    if not len(raw) or raw.max() == raw.min():
        return np.zeros(len(raw))
    scaled: Vector = np.floor(BEST * ((raw - raw.min()) / (raw.max() - raw.min())))
    return scaled
