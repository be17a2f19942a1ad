"""`hekla replay`: run recorded scenarios, one JSON object per line, and compare the answers with the recording."""

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any

import click

from hekla.cli import judging
from hekla.engine import scenario

MAX_LINE = 64_000_000
_GZIP_MAGIC = b"\x1f\x8b"
_ERRORS = (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError)
_VERDICTS = ("met", "missed", "error", "unsupported", "not judged")
_RATES = ("canonical", "deterministic", "by the rules")


@click.command("replay")
@click.argument(
    "files", metavar="FILE…", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--check", is_flag=True, help="Compare with the recorded outcomes; print a table instead of the answers.")
@click.option("--list", "show", is_flag=True, help="With --check: list the scenarios that differ.")
def replay(files: tuple[Path, ...], check: bool, show: bool) -> None:
    """Run the scenarios in each FILE (JSON lines, plain or gzip) through the scheduling engine."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for number, line in chain.from_iterable(map(_lines, files)):
        document, answer = _answer(number, line)
        if not check:
            click.echo(json.dumps(answer, separators=(",", ":"), sort_keys=True))
            continue
        verdict = judging.judge(document, answer.get("cycles", []))
        word = _word(answer, verdict)
        _count(table[_family(document)], word, verdict)
        if show and word not in ("met", "not judged"):
            click.echo(f"{word:12}{answer['id']}  {answer.get('error') or answer.get('unsupported') or ''}")
    if check:
        _print_table(table)


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    with _open(file) as lines:
        yield from ((number, line) for number, line in enumerate(lines, 1) if line.strip())


def _open(file: Path) -> IO[bytes]:
    with file.open("rb") as start:
        packed = start.read(2) == _GZIP_MAGIC
    return gzip.open(file, "rb") if packed else file.open("rb")  # type: ignore[return-value]


def _answer(number: int, line: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The scenario and the engine's answer, which contains the error if there was one."""
    document: dict[str, Any] = {}
    answer: dict[str, Any] = {"id": f"line {number}"}
    try:
        if len(line) > MAX_LINE:
            raise ValueError("The line is too long.")
        document = json.loads(line)
        answer["id"] = document["id"]
        answer["cycles"] = list(scenario.play(scenario.read(document)))
    except scenario.Unsupported as missing:
        answer["unsupported"] = str(missing)
    except _ERRORS as error:
        answer["error"] = f"{type(error).__name__}: {error}"[:500]
    return document, answer


def _family(document: dict[str, Any]) -> str:
    source = document.get("source") or {}
    return str(document.get("family") or source.get("package") or "?")


def _word(answer: dict[str, Any], verdict: judging.CaseVerdict | None) -> str:
    if verdict is None:
        return "not judged"
    return next((word for word in ("unsupported", "error") if word in answer), "met" if verdict.met else "missed")


def _count(row: Counter[str], word: str, verdict: judging.CaseVerdict | None) -> None:
    """Count a verdict. A rate is of all that its rule can judge; a missing answer counts as missed."""
    row[word] += 1
    if verdict is None:
        return
    for rate, value in zip(_RATES, (verdict.canonical, verdict.exact, verdict.met), strict=True):
        row[rate] += value is True
        row[f"of {rate}"] += value is not None


def _print_table(table: dict[str, Counter[str]]) -> None:
    width = max((len(family) for family in table), default=0) + 2
    click.echo(
        "family".ljust(width)
        + "".join(name.rjust(13) for name in _VERDICTS)
        + "".join(rate.rjust(14) for rate in _RATES)
    )
    for family in sorted(table):
        _print_row(family.ljust(width), table[family])
    _print_row("all".ljust(width), sum(table.values(), Counter()))


def _print_row(name: str, row: Counter[str]) -> None:
    rates = (f"{row[rate]}/{row[f'of {rate}']}" for rate in _RATES)
    click.echo(
        name + "".join(str(row[verdict]).rjust(13) for verdict in _VERDICTS) + "".join(r.rjust(14) for r in rates)
    )
