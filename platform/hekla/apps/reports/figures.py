"""Stacked bars as rectangles, lines and words, which the HTML and the PDF draw alike.

No library draws them: Plotly needs a browser to make a picture, and mail programs run no scripts.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from hekla.apps.reports.contents import ReportFigure

WIDTH, HEIGHT = 680.0, 200.0
"""Of a drawing. Its origin is at the top left."""
_LEFT, _BOTTOM, _TOP = 52.0, 20.0, 10.0
_GAP = 0.2
_MOST_LABELS, _MOST_TICKS = 16, 5


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A part of a bar."""

    x: float
    y: float
    width: float
    height: float
    colour: str


@dataclass(frozen=True, slots=True)
class Word:
    """A text at an axis. `is_right`: it ends at `x`; else its middle is there."""

    x: float
    y: float
    text: str
    is_right: bool = False


@dataclass(frozen=True, slots=True)
class BarDrawing:
    """A figure as shapes. `grid`: the heights of horizontal lines."""

    rectangles: tuple[Rectangle, ...]
    grid: tuple[float, ...]
    words: tuple[Word, ...]
    left: float = _LEFT


def draw(figure: ReportFigure) -> BarDrawing:
    """The shapes of stacked bars."""
    most = max((sum(parts) for _label, parts in figure.bars), default=0.0)
    step = max(_tick(most), 1.0 if figure.counts else 0.0)
    count = max(1, -int(-most // step))
    scale = (HEIGHT - _BOTTOM - _TOP) / (count * step)
    levels = [number * step for number in range(count + 1)]
    heights = tuple(HEIGHT - _BOTTOM - level * scale for level in levels)
    words = [Word(_LEFT - 6, y + 3.5, f"{level:,g}", True) for level, y in zip(levels, heights, strict=True)]
    return BarDrawing(tuple(_bars(figure, scale)), heights, (*words, *_labels(figure)))


def _tick(most: float) -> float:
    """The distance of lines: 1, 2 or 5 times a power of ten."""
    size = 0.001
    while True:
        for step in (size, 2 * size, 5 * size):
            if most <= _MOST_TICKS * step:
                return step
        size *= 10


def _bars(figure: ReportFigure, scale: float) -> Iterator[Rectangle]:
    room = (WIDTH - _LEFT) / max(1, len(figure.bars))
    for number, (_label, parts) in enumerate(figure.bars):
        top = HEIGHT - _BOTTOM
        for colour, part in zip(figure.colours, parts, strict=True):
            height = part * scale
            top -= height
            if height > 0:
                yield Rectangle(_LEFT + (number + _GAP / 2) * room, top, room * (1 - _GAP), height, colour)


def _labels(figure: ReportFigure) -> Iterator[Word]:
    room = (WIDTH - _LEFT) / max(1, len(figure.bars))
    every = -(-len(figure.bars) // _MOST_LABELS)
    for number, (label, _parts) in enumerate(figure.bars):
        if number % every == 0:
            yield Word(_LEFT + (number + 0.5) * room, HEIGHT - 6, label)
