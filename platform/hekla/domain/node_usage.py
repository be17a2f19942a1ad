"""The measured usage of nodes and their cards."""

from dataclasses import dataclass
from datetime import timedelta

MAX_AGE = timedelta(minutes=5)
"""Older measurements are not used, as in Volcano."""
MEAN_SECONDS = 120.0
"""In this time the weight of a measurement in a mean falls to a third: the mean is that of the last few minutes."""
CARD_RESOURCE_LENGTH = 317


@dataclass(frozen=True, slots=True)
class CardMetrics:
    """What processes use of a card. `index`: among the cards of its resource.

    `busy`: per cent of the time in which it computed. `memory_mib`: of its memory.
    """

    resource: str
    index: int
    busy: float
    memory_mib: int = 0
