"""The cost of each phase of a reconciliation, measured around the functions that are its phases."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any
from unittest.mock import patch

from django.db import connection

Phases = Sequence[tuple[str, object, str]]
"""The name of a phase, with the object and the attribute where its function is."""
_TICKS = 100
"""Of /proc, a second."""
_OTHER = "other"


@dataclass(slots=True)
class PhaseCost:
    """Seconds, CPU seconds of this process, database statements, and rows that they returned or changed."""

    wall: float = 0.0
    cpu: float = 0.0
    statements: int = 0
    rows: int = 0

    def add(self, before: "PhaseCost", after: "PhaseCost") -> None:
        """Add the difference of two readings."""
        for field in fields(self):
            name = field.name
            setattr(self, name, getattr(self, name) + getattr(after, name) - getattr(before, name))


class PhaseMeter:
    """Measures calls by phase. A phase inside another counts only for itself."""

    def __init__(self, phases: Phases) -> None:
        self._phases = phases
        self._statements = self._rows = 0
        self._stack = [_OTHER]
        self._costs: dict[str, PhaseCost] = {}
        self._last = PhaseCost()

    def measure(self, function: Callable[[], object]) -> tuple[Mapping[str, PhaseCost], float]:
        """Call it. Returns the costs of its phases, and the CPU seconds of its database connection."""
        self._costs, server = defaultdict(PhaseCost), server_seconds()
        with self._watching():
            self._last = self._read()
            function()
            self._switch()
        return self._costs, server_seconds() - server

    @contextmanager
    def _watching(self) -> Iterator[None]:
        with ExitStack() as stack:
            for name, owner, attribute in self._phases:
                timed = self._timed(name, getattr(owner, attribute))
                stack.enter_context(patch.object(owner, attribute, timed))
            stack.enter_context(connection.execute_wrapper(self._count))
            yield

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def timed(*args: object, **options: object) -> object:
            self._switch()
            self._stack.append(name)
            try:
                return function(*args, **options)
            finally:
                self._switch()
                self._stack.pop()

        return timed

    def _switch(self) -> None:
        now = self._read()
        self._costs[self._stack[-1]].add(self._last, now)
        self._last = now

    def _read(self) -> PhaseCost:
        return PhaseCost(time.perf_counter(), time.process_time(), self._statements, self._rows)

    def _count(self, execute: Callable[..., Any], sql: str, params: object, many: bool, context: Any) -> object:  # noqa: ANN401
        self._statements += 1
        result = execute(sql, params, many, context)
        self._rows += max(0, context["cursor"].rowcount)
        return result


def server_seconds() -> float:
    """The CPU seconds so far of the database process that serves this connection; 0 where /proc does not say it."""
    connection.ensure_connection()
    try:
        stat = Path(f"/proc/{connection.connection.info.backend_pid}/stat").read_text()
    except OSError:
        return 0.0
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / _TICKS
