"""How finely use is kept until which age."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Level:
    """Samples of so many seconds, kept so long."""

    span_seconds: int
    retention: timedelta


LEVELS = (Level(10, timedelta(hours=1)), Level(60, timedelta(days=1)), Level(600, timedelta(days=30)))
FINEST = LEVELS[0].span_seconds
