"""A flow as a drawing: where its steps and the lines between them lie. Two of them, for wide screens and for phones.

Wide: steps stand in columns from left to right, each right of all that it waits for; a line that passes a column gets
a place of its own there. Narrow: one step a row, moved in by its column, with lines that go down and then right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hekla.domain.flows import FlowSpec

WIDTH, HEIGHT = 176, 52
GAP_X, GAP_Y, LANE, MARGIN = 44, 14, 16, 6
NARROW_WIDTH, ROW, INDENT, MOST_INDENTS = 328, 60, 14, 8
Waits = Mapping[str, Sequence[str]]
Place = tuple[str, str]  # a step and "", or a line (from, to) that passes


@dataclass(frozen=True, slots=True)
class Box:
    """A step. Texts stand at `text_x`; `first_y`, `second_y` are the lines of text."""

    name: str
    x: int
    y: int
    width: int
    height: int = HEIGHT

    @property
    def inner_width(self) -> int:
        """Of what is drawn: the stroke has room too."""
        return self.width - 2

    @property
    def inner_height(self) -> int:
        return self.height - 2

    @property
    def short(self) -> str:
        """Its name, as much of it as has room."""
        most = (self.width - 24) // 8
        return self.name if len(self.name) <= most else f"{self.name[: most - 1]}…"


@dataclass(frozen=True, slots=True)
class StepEdge:
    """From a step to one that waits for it, as the path of an SVG."""

    before: str
    after: str
    path: str


@dataclass(frozen=True, slots=True)
class Drawing:
    width: int
    height: int
    boxes: Sequence[Box]
    lines: Sequence[StepEdge]


def columns(waits: Waits) -> dict[str, int]:
    """For each step its column: one more than the last of those that it waits for."""
    found: dict[str, int] = {}
    while len(found) < len(waits):
        for name, others in waits.items():
            if name not in found and all(other in found for other in others):
                found[name] = max((found[other] + 1 for other in others), default=0)
    return found


def wide(spec: FlowSpec) -> Drawing:
    """Columns from left to right."""
    waits = spec.waits
    column = columns(waits)
    grid = _grid(waits, column)
    heights = [sum(_size(place) for place in places) + GAP_Y * (len(places) - 1) for places in grid]
    tops: dict[tuple[int, Place], int] = {}
    for number, places in enumerate(grid):
        y = MARGIN + (max(heights) - heights[number]) // 2
        for place in places:
            tops[number, place] = y
            y += _size(place) + GAP_Y
    boxes = [Box(name, _left(column[name]), tops[column[name], (name, "")], WIDTH) for name in waits]
    lines = [
        StepEdge(before, after, _curve(before, after, column, tops))
        for after, others in waits.items()
        for before in others
    ]
    width = _left(len(grid)) - GAP_X + MARGIN
    return Drawing(width, max(heights) + 2 * MARGIN, boxes, lines)


def narrow(spec: FlowSpec) -> Drawing:
    """One step a row."""
    waits = spec.waits
    column = columns(waits)
    order = sorted(waits, key=lambda name: (column[name], list(waits).index(name)))
    boxes = {}
    for row, name in enumerate(order):
        x = MARGIN + INDENT * min(column[name], MOST_INDENTS)
        boxes[name] = Box(name, x, MARGIN + ROW * row, NARROW_WIDTH - MARGIN - x)
    lines = [StepEdge(b, a, _corner(boxes[b], boxes[a])) for a, others in waits.items() for b in others]
    return Drawing(NARROW_WIDTH, MARGIN + ROW * len(order), list(boxes.values()), lines)


def _grid(waits: Waits, column: Mapping[str, int]) -> list[list[Place]]:
    """What stands in each column from the top: near what it comes from."""
    grid: list[list[Place]] = [[] for _ in range(max(column.values()) + 1)]
    for name, others in waits.items():
        grid[column[name]].append((name, ""))
        for other in others:
            for between in range(column[other] + 1, column[name]):
                grid[between].append((other, name))
    for number in range(1, len(grid)):
        before = {place: at for at, place in enumerate(grid[number - 1])}
        grid[number].sort(key=lambda place, before=before: _middle(place, before, waits))  # type: ignore[misc]
    return grid


def _middle(place: Place, before: Mapping[Place, int], waits: Waits) -> float:
    """Where, on average, that stands in the column before from which lines come to this place."""
    name, towards = place
    comes_from = [(name, ""), place] if towards else [p for other in waits[name] for p in ((other, ""), (other, name))]
    found = [before[one] for one in comes_from if one in before]
    return sum(found) / len(found) if found else 0.0


def _size(place: Place) -> int:
    return LANE if place[1] else HEIGHT


def _left(column: int) -> int:
    return MARGIN + column * (WIDTH + GAP_X)


def _curve(before: str, after: str, column: Mapping[str, int], tops: Mapping[tuple[int, Place], int]) -> str:
    x, y = _left(column[before]) + WIDTH, tops[column[before], (before, "")] + HEIGHT // 2
    path = f"M{x} {y}"
    for number in range(column[before] + 1, column[after] + 1):
        place = (before, after) if number < column[after] else (after, "")
        to_x, to_y = _left(number), tops[number, place] + _size(place) // 2
        path += f"C{x + GAP_X // 2} {y} {to_x - GAP_X // 2} {to_y} {to_x} {to_y}"
        x, y = to_x, to_y
        if place[1]:
            x = to_x + WIDTH
            path += f"H{x}"
    return path


def _corner(before: Box, after: Box) -> str:
    return f"M{before.x + INDENT // 2} {before.y + before.height}V{after.y + after.height // 2}H{after.x}"
