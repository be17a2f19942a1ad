"""Resolutions of samples, and how long each is kept."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Level:
    """Samples of `span_seconds`, kept for `retention`."""

    span_seconds: int
    retention: timedelta


LEVELS = (Level(10, timedelta(hours=1)), Level(60, timedelta(days=1)), Level(600, timedelta(days=30)))
FINEST = LEVELS[0].span_seconds
