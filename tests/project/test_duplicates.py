"""No twelve lines are duplicated. Blank lines, indentation, imports and migrations do not count."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
SOURCES = (
    ("platform", "*.py"),
    ("tests", "*.py"),
    ("templates", "*.html"),
    ("templates", "*.txt"),
    ("static", "*.js"),
    ("static", "*.css"),
)
IMPORTS = re.compile(r"^ *(?:import|from \S+ import) (?:\([^)]*\)|.*)", re.MULTILINE)
MIN_LINES = 12

NumberedLine = tuple[int, str]


def files() -> Iterator[Path]:
    for folder, pattern in SOURCES:
        for path in sorted((CHECKOUT / folder).rglob(pattern)):
            if not {"migrations", "vendor"} & set(path.parts):
                yield path


def lines_of(path: Path) -> list[NumberedLine]:
    """The lines that count, with their numbers."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        text = IMPORTS.sub(lambda found: "\n" * found[0].count("\n"), text)
    return [(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]


def repeated(texts: dict[str, list[NumberedLine]]) -> list[str]:
    """The locations of each run of `MIN_LINES` lines that occurs more than once."""
    locations = defaultdict(list)
    for name, lines in texts.items():
        for start in range(len(lines) - MIN_LINES + 1):
            run = tuple(line for _number, line in lines[start : start + MIN_LINES])
            locations[run].append(f"{name}:{lines[start][0]}")
    return [" = ".join(found) for found in locations.values() if len(found) > 1]


def test_no_duplicates() -> None:
    assert repeated({str(path.relative_to(CHECKOUT)): lines_of(path) for path in files()}) == []


@pytest.mark.parametrize(("count", "found"), [(MIN_LINES - 1, []), (MIN_LINES, ["a:1 = b:2"])])
def test_duplicate_is_found_from_twelve_lines_on(count: int, found: list[str]) -> None:
    lines = [(number, f"line {number}") for number in range(1, count + 1)]
    texts = {"a": lines, "b": [(1, "another"), *((number + 1, line) for number, line in lines)]}
    assert repeated(texts) == found
