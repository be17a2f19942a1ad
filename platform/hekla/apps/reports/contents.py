"""The contents of a report for one reader, in words and figures: the same for its page, its files and its mail."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo

from hekla.lib.text import show_bidi_controls, strip_control_codes, truncate

_LONGEST = 120


@dataclass(frozen=True, slots=True)
class ReportTable:
    """Cells as texts; all columns except the first are numbers. `colours`: of the rows, if they explain a figure."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    foot: tuple[str, ...] = ()
    colours: tuple[str, ...] = ()

    @property
    def coloured_rows(self) -> list[tuple[list[tuple[str, str]], str]]:
        """Each row as pairs of head and cell, with its colour; empty if the table has none."""
        colours = self.colours or ("",) * len(self.rows)
        return [
            (list(zip(self.heads, row, strict=True)), colour) for row, colour in zip(self.rows, colours, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class ReportFigure:
    """Stacked bars. `colours`: of the parts of each bar; `bars`: a label, and the parts from below. `counts`: the parts
    are whole numbers, and so are the ticks.
    """

    label: str
    colours: tuple[str, ...]
    bars: tuple[tuple[str, tuple[float, ...]], ...]
    counts: bool = False


@dataclass(frozen=True, slots=True)
class ReportPart:
    """A section as its reader gets it."""

    title: str
    text: str = ""
    figure: ReportFigure | None = None
    table: ReportTable | None = None


@dataclass(frozen=True, slots=True)
class ReportContents:
    """A whole report. `lines`: what it is about. `notices`: what its reader must know about its figures."""

    title: str
    lines: tuple[str, ...]
    notices: tuple[str, ...] = ()
    parts: Sequence[ReportPart] = field(default_factory=tuple)


def plain(text: str) -> str:
    """A name as it can be shown anywhere: on one line, bounded, without control codes."""
    return truncate(show_bidi_controls(strip_control_codes(" ".join(text.split()))), _LONGEST)


def moment(at: datetime, zone: tzinfo = UTC) -> str:
    """An instant by the clock of a zone."""
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M}"
