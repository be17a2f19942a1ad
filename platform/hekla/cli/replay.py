"""`hekla replay FILE`: recorded scenarios through the engine, for comparison with what Volcano did."""

import gzip
import io
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from hekla.cli import judging, scenarios


@dataclass
class Tally:
    """One family's figures."""

    cases: int = 0
    agree: int = 0
    without_luck: int = 0
    exact: int = 0
    canonical: int = 0
    as_canonical: int = 0
    unsupported: dict[str, int] = field(default_factory=lambda: defaultdict(int))


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--check", is_flag=True, help="Compare with the recorded outcomes and print a table per family.")
@click.option("--list", "list_them", is_flag=True, help="With --check: name every case that differs, and how.")
@click.option("--family", help="Only cases of this family.")
def replay(file: Path, check: bool, list_them: bool, family: str | None) -> None:
    """Run the scenarios of FILE (JSON lines, plain or gzip) and print one answer a line.

    A scenario that needs what this engine does not have is answered with the list of it under "unsupported".
    """
    tallies: dict[str, Tally] = defaultdict(Tally)
    for case in _read(file):
        name = case.get("family") or case["source"]["package"].removeprefix("pkg/scheduler/")
        if family not in (None, name) or case.get("portable") is False:
            continue
        lacking = scenarios.missing(case)
        answer = {"id": case["id"], "unsupported": lacking} if lacking else scenarios.answer(case)
        if not check:
            click.echo(json.dumps(answer, sort_keys=True))
        elif wrong := _count(tallies[name], case, answer):
            if list_them:
                click.echo(f"{case['id']}: {wrong}")
    if check:
        click.echo(_table(tallies))


def _read(file: Path) -> Iterator[dict[str, Any]]:
    with file.open("rb") as raw:
        is_zipped = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        with io.TextIOWrapper(gzip.GzipFile(fileobj=raw) if is_zipped else raw, encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.strip())


def _count(tally: Tally, case: dict[str, Any], answer: dict[str, Any]) -> str:
    """Judge one answer; what differs, if anything."""
    tally.cases += 1
    if "unsupported" in answer:
        for word in answer["unsupported"]:
            tally.unsupported[word] += 1
        tally.unsupported[""] += 1
        return ""
    wrong = judging.disagreement(case, answer)
    tally.agree += not wrong
    if case.get("deterministic"):
        tally.without_luck += 1
        tally.exact += not wrong
    difference = judging.canonical_difference(case, answer)
    if difference is not None:
        tally.canonical += 1
        tally.as_canonical += not difference
    return wrong or (f"{difference} (in the fixed order of ties)" if difference else "")


def _table(tallies: dict[str, Tally]) -> str:
    lines = [f"{'family':32}{'judged':>8}{'agree':>8}{'exact of those without luck':>30}{'in fixed order':>17}  unsupported"]
    for name, tally in sorted(tallies.items()):
        judged = tally.cases - tally.unsupported.get("", 0)
        why = ", ".join(f"{word} {n}" for word, n in sorted(tally.unsupported.items()) if word)
        exact, fixed = f"{tally.exact}/{tally.without_luck}", f"{tally.as_canonical}/{tally.canonical}"
        lines.append(f"{name:32}{judged:>8}{tally.agree:>8}{exact:>30}{fixed:>17}  {why}".rstrip())
    judged, agree = sum(t.cases - t.unsupported.get("", 0) for t in tallies.values()), sum(t.agree for t in tallies.values())
    without_luck, exact_all = sum(t.without_luck for t in tallies.values()), sum(t.exact for t in tallies.values())
    every, fixed_all = sum(t.canonical for t in tallies.values()), sum(t.as_canonical for t in tallies.values())
    lines.append(f"{'all':32}{judged:>8}{agree:>8}{f'{exact_all}/{without_luck}':>30}{f'{fixed_all}/{every}':>17}")
    return "\n".join(lines)
