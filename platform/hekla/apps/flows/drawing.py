"""Layouts of a flow as a graph of steps and edges, in pixels: one for wide screens, one for phones.

Wide: columns from left to right, each step right of its dependencies; an edge that crosses a column has its own lane
there. Narrow: one step per row, indented by its column; edges run down, then right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hekla.domain.flows import FlowSpec

WIDTH, HEIGHT = 176, 52
GAP_X, GAP_Y, LANE, MARGIN = 44, 14, 16, 6
NARROW_WIDTH, ROW, INDENT, MOST_INDENTS = 328, 60, 14, 8
Waits = Mapping[str, Sequence[str]]
GridCell = tuple[str, str]  # (step, ""), or (from, to) of an edge that crosses the column


@dataclass(frozen=True, slots=True)
class Box:
    """The box of a step."""

    name: str
    x: int
    y: int
    width: int
    height: int = HEIGHT

    @property
    def inner_width(self) -> int:
        """The width without the stroke."""
        return self.width - 2

    @property
    def inner_height(self) -> int:
        return self.height - 2

    @property
    def short(self) -> str:
        """The step's name, shortened to fit the box."""
        most = (self.width - 24) // 8
        return self.name if len(self.name) <= most else f"{self.name[: most - 1]}…"


@dataclass(frozen=True, slots=True)
class StepEdge:
    """The edge from a step to one that depends on it, as an SVG path."""

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
    """The column of each step: one more than the last column of its dependencies."""
    found: dict[str, int] = {}
    while len(found) < len(waits):
        for name, others in waits.items():
            if name not in found and all(other in found for other in others):
                found[name] = max((found[other] + 1 for other in others), default=0)
    return found


def wide(spec: FlowSpec) -> Drawing:
    """The layout for wide screens, in columns."""
    waits = spec.waits
    column = columns(waits)
    grid = _grid(waits, column)
    heights = [sum(_size(place) for place in places) + GAP_Y * (len(places) - 1) for places in grid]
    tops: dict[tuple[int, GridCell], int] = {}
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
    """The layout for phones, one step per row."""
    waits = spec.waits
    column = columns(waits)
    order = sorted(waits, key=lambda name: (column[name], list(waits).index(name)))
    boxes = {}
    for row, name in enumerate(order):
        x = MARGIN + INDENT * min(column[name], MOST_INDENTS)
        boxes[name] = Box(name, x, MARGIN + ROW * row, NARROW_WIDTH - MARGIN - x)
    lines = [StepEdge(b, a, _corner(boxes[b], boxes[a])) for a, others in waits.items() for b in others]
    return Drawing(NARROW_WIDTH, MARGIN + ROW * len(order), list(boxes.values()), lines)


def _grid(waits: Waits, column: Mapping[str, int]) -> list[list[GridCell]]:
    """The steps and crossing edges of each column from the top, near the places that they come from."""
    grid: list[list[GridCell]] = [[] for _ in range(max(column.values()) + 1)]
    for name, others in waits.items():
        grid[column[name]].append((name, ""))
        for other in others:
            for between in range(column[other] + 1, column[name]):
                grid[between].append((other, name))
    for number in range(1, len(grid)):
        before = {place: at for at, place in enumerate(grid[number - 1])}
        grid[number].sort(key=lambda place, before=before: _middle(place, before, waits))  # type: ignore[misc]
    return grid


def _middle(place: GridCell, before: Mapping[GridCell, int], waits: Waits) -> float:
    """The mean position, in the previous column, of the places with an edge to this place."""
    name, towards = place
    comes_from = [(name, ""), place] if towards else [p for other in waits[name] for p in ((other, ""), (other, name))]
    found = [before[one] for one in comes_from if one in before]
    return sum(found) / len(found) if found else 0.0


def _size(place: GridCell) -> int:
    return LANE if place[1] else HEIGHT


def _left(column: int) -> int:
    return MARGIN + column * (WIDTH + GAP_X)


def _curve(before: str, after: str, column: Mapping[str, int], tops: Mapping[tuple[int, GridCell], int]) -> str:
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
