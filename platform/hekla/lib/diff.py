"""Line differences between two texts."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

_CONTEXT = 3


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a diff. `kind`: `removed`, `added`, `same`, or `gap` for omitted lines."""

    kind: str
    text: str


_KINDS = {"-": "removed", "+": "added", " ": "same"}


def diff_lines(old: str, new: str) -> list[DiffLine]:
    """The diff from `old` to `new` with three lines of context; empty if they are equal."""
    changes = difflib.unified_diff(old.splitlines(), new.splitlines(), n=_CONTEXT, lineterm="")
    return list(_lines(changes))


def _lines(changes: Iterator[str]) -> Iterator[DiffLine]:
    hunks = 0
    for place, line in enumerate(changes):
        if place < 2:  # noqa: PLR2004  (the names of two files)
            continue
        if line.startswith("@@"):
            hunks += 1
            if hunks > 1:
                yield DiffLine("gap", "…")
        else:
            yield DiffLine(_KINDS[line[0]], line[1:])
