"""Tables of sums: how their rows are written, and added up to coarser ones.

Names of tables and columns are our own, so statements are built from text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
MOST = 2**63 - 1
"""The largest amount that a column holds. Only absurd prices or requests lead there; they must not stop all sums."""
StepAmounts = dict[str, list[int]]
"""Amounts by column in each step."""
Sums = Mapping[tuple[Any, ...], StepAmounts]


@dataclass(frozen=True, slots=True)
class SumTable:
    """A table of sums: its columns that say whose they are, and those of its classes."""

    name: str
    keys: tuple[str, ...]
    classes: tuple[str, ...]

    @property
    def totals(self) -> str:
        """The columns of classes, added up, as far as a column can hold it."""
        return ", ".join(f"least(sum({one}), {MOST})" for one in self.classes)

    @property
    def columns(self) -> str:
        return ", ".join(("level", "cluster_id", "at", *self.keys, *self.classes))


def copy(
    cursor: Any,  # noqa: ANN401
    table: SumTable,
    where: tuple[int, int],
    times: Sequence[datetime],
    sums: Sums,
) -> None:
    """Insert the sums of these steps. `where`: level and cluster. Text is built here: psycopg takes longer by row."""
    with cursor.copy(f"COPY {table.name} ({table.columns}) FROM STDIN") as target:
        heads = [f"{where[0]}\t{where[1]}\t{at.isoformat()}" for at in times]
        none = [0] * len(times)
        for keys, course in sorted(sums.items(), key=lambda item: tuple(map(str, item[0]))):  # as in `add_up`
            whose = "\t".join(str(key).translate(_ESCAPES) for key in keys)
            rows = zip(*(course.get(one, none) for one in table.classes), strict=True)
            target.write("".join(_lines(heads, whose, rows)))


def _lines(heads: Sequence[str], whose: str, rows: Iterable[tuple[int, ...]]) -> Iterator[str]:
    """The rows as text; none for steps without GPU time."""
    for head, amounts in zip(heads, rows, strict=True):
        if any(amounts):
            yield "\t".join((head, whose, *map(str, amounts))) + "\n"


def delete(cursor: Any, table: SumTable, cluster_id: int, place: tuple[int, datetime, datetime]) -> None:  # noqa: ANN401
    where = "level = %s AND cluster_id = %s AND at >= %s AND at < %s"
    cursor.execute(f"DELETE FROM {table.name} WHERE {where}", [place[0], cluster_id, *place[1:]])  # noqa: S608


def add_up(cursor: Any, table: SumTable, cluster_id: int, to: tuple[int, datetime, datetime, int]) -> None:  # noqa: ANN401
    """Replace one hour or day by the sum of its minutes or hours. `to`: the level, begin, end, and the finer level.

    Rows that are read together lie together: those of a queue, a tenant or a person.
    """
    level, begin, end, finer = to
    delete(cursor, table, cluster_id, (level, begin, end))
    keys = ", ".join(table.keys)
    cursor.execute(
        f"INSERT INTO {table.name} ({table.columns}) SELECT %s, cluster_id, %s, {keys}, {table.totals}"  # noqa: S608  (names of our own)
        f" FROM {table.name} WHERE level = %s AND cluster_id = %s AND at >= %s AND at < %s"
        f" GROUP BY cluster_id, {keys} ORDER BY {keys}",
        [level, begin, finer, cluster_id, begin, end],
    )


def derive(
    cursor: Any,  # noqa: ANN401
    tables: tuple[SumTable, SumTable],
    keys: str,
    cluster_id: int,
    place: tuple[int, datetime, datetime],
) -> None:
    """Add up the first table into the second one, at the same level. `keys`: those of the second in the first."""
    source, target = tables
    grouped = ", ".join(str(number) for number in range(1, 4 + len(target.keys)))
    cursor.execute(
        f"INSERT INTO {target.name} ({target.columns}) SELECT level, cluster_id, at, {keys}, {target.totals}"  # noqa: S608  (names of our own)
        f" FROM {source.name} WHERE level = %s AND cluster_id = %s AND at >= %s AND at < %s GROUP BY {grouped}",
        [place[0], cluster_id, *place[1:]],
    )
