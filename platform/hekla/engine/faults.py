"""Plugins and actions that fail.

Whatever a plugin says is asked for through `guarded`, so that a failure carries its plugin's name. The cycle then
decides anew from the same state, without the plugin or not at all: nothing that was half done counts. What plugins of
others answer is also looked at: a score that is no number or a victim that nobody offered is a failure as well.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from traceback import extract_tb
from typing import Any

import numpy as np

from hekla.engine import registry
from hekla.engine.decisions import Fault
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption

Answer = Callable[..., Any]
_VOICES = frozenset({
    Point.PREDICATE, Point.CHANGING_PREDICATE, Point.WIDE_PREDICATE, Point.USE_ORDER, Point.WIDE_NODE_ORDER,
})  # fmt: skip
_SCORES = frozenset({Point.USE_ORDER, Point.NODE_ORDER, Point.WIDE_NODE_ORDER})
_SHARES = frozenset({Point.QUEUE_SHARE, Point.JOB_SHARE})
_VICTIMS = frozenset({Point.PREEMPTABLE, Point.RECLAIMABLE})
SKIP, STOP = "skip", "stop"


class Failed(Exception):
    """Something of the policy failed. `option` is its plugin, None for an action."""

    def __init__(self, name: str, point: str, option: PluginOption | None, cause: Exception) -> None:
        super().__init__(f"{name} failed at {point}")
        self.option = option
        self._said = name, point, _describe(cause)

    def fault(self, *, is_skipped: bool) -> Fault:
        """What to tell about it."""
        return Fault(*self._said, is_skipped)


def guarded(option: PluginOption, point: Point, answer: Answer) -> Answer:
    """The same answer; a failure says whose it is."""
    if registry.is_foreign(option.name):
        answer = _checked(point, answer)
    if point in _VOICES:
        answer = _with_voices(option, point, answer)

    def ask(*arguments: Any) -> Any:  # noqa: ANN401
        try:
            return answer(*arguments)
        except Failed:
            raise
        except Exception as error:
            raise Failed(option.name, point.name.lower(), option, error) from error

    return ask


def _checked(point: Point, answer: Answer) -> Answer:
    def ask(*arguments: Any) -> Any:  # noqa: ANN401
        result = answer(*arguments)
        _check(point, arguments, result)
        return result

    return ask


def _with_voices(option: PluginOption, point: Point, answer: Answer) -> Answer:
    return lambda *arguments: _voice(option, point, answer(*arguments))


def _voice(option: PluginOption, point: Point, result: Any) -> Any:  # noqa: ANN401
    """What a factory gave: its function is guarded in turn, and what comes bit by bit is made whole here."""
    if callable(result):
        return guarded(option, point, result)
    return list(result) if isinstance(result, Iterator) else result


def guarded_listener(option: PluginOption, point: str, listener: Answer) -> Answer:
    """A listener, likewise."""

    def hear(*arguments: Any) -> None:  # noqa: ANN401
        try:
            listener(*arguments)
        except Exception as error:
            raise Failed(option.name, point, option, error) from error

    return hear


def is_skipped(option: PluginOption, spoke_at: frozenset[Point]) -> bool:
    """Whether the cycle may go on without a plugin: as its argument `onError` says, else if all it does is score."""
    wish = option.arguments.get("onError")
    if wish in (SKIP, STOP):
        return wish == SKIP
    return bool(spoke_at) and spoke_at <= _SCORES | {Point.TASK_CLASS}


def is_action_skipped(arguments: Mapping[str, Any]) -> bool:
    """An action that fails ends the cycle, unless its configuration says otherwise."""
    return arguments.get("onError") == SKIP


def _check(point: Point, arguments: Sequence[Any], result: Any) -> None:  # noqa: ANN401
    if point in _SCORES and result is not None and not callable(result):
        count = _rows_asked(point, arguments)
        scores = np.asarray(result, dtype=float)
        if scores.shape != (count,) or not np.isfinite(scores).all():
            raise ValueError("Scores are finite numbers, one for each row asked for.")
    if point in _SHARES and not np.isfinite(float(result)):
        raise ValueError("A share is a finite number.")
    if point in _VICTIMS and result:
        offered = {member.task.uid for member in arguments[1]}
        if any(victim.task.uid not in offered for victim in result):
            raise ValueError("Only candidates may be victims.")


def _rows_asked(point: Point, arguments: Sequence[Any]) -> int:
    if point is Point.NODE_ORDER:
        return len(arguments[1].used[arguments[2]])
    return len(arguments[0].used) if point is Point.USE_ORDER else len(arguments[0])


def _describe(error: Exception) -> str:
    last = extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({last.filename.rpartition('/')[2]}:{last.lineno})"[:500]
