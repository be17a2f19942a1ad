"""Which periodic tasks have work, found in one statement for all of them.

A task that looks and finds nothing costs several queries. So each declares queries that find a row whenever it has
work: now, or before the next safety run, because it plans its next wakeup then. They may find a row although there is
nothing to do, but never the other way round: a task that is left out replaces no lost message.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from django.db.models import DateTimeField, QuerySet

from hekla.apps.compiled import CompiledChecks, Parameter
from hekla.apps.wakeups import HORIZON_SECONDS

Queries = Callable[[], Iterable[QuerySet[Any, Any]]]
_declared: dict[str, tuple[Queries, ...]] = {}


def present() -> Parameter:
    """The time of the check, in a declared query."""
    return Parameter("now", DateTimeField())


def horizon() -> Parameter:
    """The time up to which a task plans its wakeups, in a declared query: a safety run comes before."""
    return Parameter("horizon", DateTimeField())


def declare(task: str, *queries: Queries) -> None:
    """The task of this name has work only if one of these queries finds a row."""
    _declared[task] = queries


def is_declared(task: str) -> bool:
    """Whether the queries of this task are known."""
    return task in _declared


def tasks_with_work(names: Sequence[str], *, now: datetime) -> list[str]:
    """Those of these tasks that have work, and those that declare no queries, in the same order."""
    declared = tuple(name for name in names if name in _declared)
    until = now + timedelta(seconds=HORIZON_SECONDS)
    found = set(_checks(declared).names(now=now, horizon=until)) if declared else set[str]()
    return [name for name in names if name in found or name not in _declared]


@cache
def _checks(names: tuple[str, ...]) -> CompiledChecks:
    return CompiledChecks(lambda: {name: [one for some in _declared[name] for one in some()] for name in names})
