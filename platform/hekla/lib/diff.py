"""Two texts, line by line: what went and what came."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

_AROUND = 3


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a difference. `kind`: `went`, `came`, `same`, or `gap` where lines that are the same are left out."""

    kind: str
    text: str


_KINDS = {"-": "went", "+": "came", " ": "same"}


def diff_lines(old: str, new: str) -> list[DiffLine]:
    """What to do to come from the one to the other, with three lines around each change; empty where they are alike."""
    changes = difflib.unified_diff(old.splitlines(), new.splitlines(), n=_AROUND, lineterm="")
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
