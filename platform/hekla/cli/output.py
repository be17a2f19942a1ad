"""Output in a terminal. Callers strip control codes from users' text, so it cannot control the terminal."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from hekla.lib.text import escape_bidi_in_json, show_bidi_controls

COLOURS = {  # by the phase of a job or a pod
    "pending": "yellow",
    "running": "blue",
    "completed": "green",
    "succeeded": "green",
    "failed": "red",
    "lost": "red",
    "aborted": "magenta",
    "terminated": "magenta",
}


def phase(name: str) -> str:
    """A phase in its colour."""
    return click.style(name, fg=COLOURS.get(name, "cyan"))


def moment(at: str | None) -> str:
    """A time in this machine's time zone; a dash for None."""
    return datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M:%S") if at else "–"


def seconds(number: float) -> str:
    """A duration: `2 h 5 min`, `12 s`."""
    whole = max(0, round(number))
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"


def as_json(document: object) -> None:
    """Print JSON, for programs."""
    click.echo(escape_bidi_in_json(json.dumps(document, indent=2, ensure_ascii=False)))


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]], empty: str) -> None:
    """Print aligned columns, or the sentence `empty` if there are no rows."""
    if not rows:
        click.echo(empty)
        return
    cells = [[show_bidi_controls(str(cell)) for cell in row] for row in rows]
    widths = [max(len(click.unstyle(row[place])) for row in [list(heads), *cells]) for place in range(len(heads))]
    for number, row in enumerate([list(heads), *cells]):
        line = "  ".join(
            cell + " " * (width - len(click.unstyle(cell))) for cell, width in zip(row, widths, strict=True)
        )
        click.echo(click.style(line.rstrip(), bold=True) if number == 0 else line.rstrip())


def amounts(quantities: dict[str, str]) -> str:
    """`cpu 4, memory 8Gi`."""
    return ", ".join(f"{name} {amount}" for name, amount in quantities.items() if name != "pods") or "–"


def cards(held: Sequence[Mapping[str, Any]]) -> str:
    """`0, 1 (2048 MiB)`; empty without cards."""
    return ", ".join(str(card["index"]) + (f" ({card['part_mib']} MiB)" if card["part_mib"] else "") for card in held)
