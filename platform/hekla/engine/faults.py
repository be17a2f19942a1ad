"""Failures of plugins and actions.

`guarded` wraps each registered function, so that an exception carries its plugin. The cycle then starts again from the
same state, without the plugin, or decides nothing; half-done work is dropped. Results of external plugins are checked
too: a score that is not finite, or a victim that was no candidate, is a failure.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from traceback import extract_tb
from typing import Any

import numpy as np

from hekla.engine import registry
from hekla.engine.decisions import ExtensionFault
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.policy import PluginOption

Function = Callable[..., Any]
_FACTORIES = frozenset(
    {
        ExtensionPoint.PREDICATE,
        ExtensionPoint.CHANGING_PREDICATE,
        ExtensionPoint.WIDE_PREDICATE,
        ExtensionPoint.USE_ORDER,
        ExtensionPoint.COLUMN_ORDER,
        ExtensionPoint.WIDE_NODE_ORDER,
    }
)
"""Points whose functions return functions or iterators: those are guarded too."""
_SCORES = frozenset(
    {
        ExtensionPoint.USE_ORDER,
        ExtensionPoint.COLUMN_ORDER,
        ExtensionPoint.NODE_ORDER,
        ExtensionPoint.WIDE_NODE_ORDER,
    }
)
_SHARES = frozenset({ExtensionPoint.QUEUE_SHARE, ExtensionPoint.JOB_SHARE})
_VICTIMS = frozenset({ExtensionPoint.PREEMPTABLE, ExtensionPoint.RECLAIMABLE})
SKIP, STOP = "skip", "stop"


class ExtensionFailed(Exception):
    """A plugin or action of the policy failed. `option` is the plugin's; None for an action."""

    def __init__(self, name: str, point: str, option: PluginOption | None, cause: Exception) -> None:
        super().__init__(f"{name} failed at {point}")
        self.option = option
        last = extract_tb(cause.__traceback__)[-1]
        where = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
        self._description = name, point, f"{type(cause).__name__}: {cause} ({where})"[:500]

    def fault(self, *, is_skipped: bool) -> ExtensionFault:
        """The fault to report."""
        return ExtensionFault(*self._description, is_skipped)


def guarded(option: PluginOption, point: ExtensionPoint, function: Function, *, is_scorer: bool = False) -> Function:
    """The function with exceptions turned into ExtensionFailed; results of external plugins are checked.

    `is_scorer`: it is not the function of the point, but a scorer that this one returned.
    """
    if registry.is_external(option.name):
        function = _checked(point, function)
    if point in _FACTORIES and not is_scorer:
        function = _with_guarded_result(option, point, function)

    def call(*arguments: Any) -> Any:  # noqa: ANN401
        try:
            return function(*arguments)
        except ExtensionFailed:
            raise
        except Exception as error:
            raise ExtensionFailed(option.name, point.name.lower(), option, error) from error

    return call


def _checked(point: ExtensionPoint, function: Function) -> Function:
    def call(*arguments: Any) -> Any:  # noqa: ANN401
        result = function(*arguments)
        _check(point, arguments, result)
        return result

    return call


def _with_guarded_result(option: PluginOption, point: ExtensionPoint, function: Function) -> Function:
    """A factory whose result is guarded too if it is a function; an iterator becomes a list.

    The same function gets the same guard, so that it can be recognized (`state_scores`).
    """
    guards: dict[int, Function] = {}

    def call(*arguments: Any) -> Any:  # noqa: ANN401
        result = function(*arguments)
        if callable(result):
            if id(result) not in guards:
                guards[id(result)] = guarded(option, point, result, is_scorer=point in _SCORES)
            return guards[id(result)]
        return list(result) if isinstance(result, Iterator) else result

    return call


def guarded_listener(option: PluginOption, point: str, listener: Function) -> Function:
    """A listener with exceptions turned into ExtensionFailed."""

    def update(*arguments: Any) -> None:  # noqa: ANN401
        try:
            listener(*arguments)
        except Exception as error:
            raise ExtensionFailed(option.name, point, option, error) from error

    return update


def is_skipped(option: PluginOption, points: frozenset[ExtensionPoint]) -> bool:
    """Whether the cycle may continue without a failed plugin: its argument `onError`, else whether it only scores."""
    on_error = option.arguments.get("onError")
    if on_error in (SKIP, STOP):
        return on_error == SKIP
    return bool(points) and points <= _SCORES | {ExtensionPoint.TASK_CLASS}


def is_action_skipped(arguments: Mapping[str, Any]) -> bool:
    """Whether the cycle continues without a failed action: only if its configuration sets `onError: skip`."""
    return arguments.get("onError") == SKIP


def _check(point: ExtensionPoint, arguments: Sequence[Any], result: Any) -> None:  # noqa: ANN401
    if point in _SCORES and result is not None and not callable(result):
        scores = np.asarray(result, dtype=float)
        if scores.shape not in _shapes(point, arguments) or not np.isfinite(scores).all():
            raise ValueError("Scores are finite numbers, one for each row asked for.")
    if point in _SHARES and not np.isfinite(float(result)):
        raise ValueError("A share is a finite number.")
    if point in _VICTIMS and result:
        offered = {pod.spec.uid for pod in arguments[1]}
        if any(victim.spec.uid not in offered for victim in result):
            raise ValueError("Only candidates may be victims.")


def _shapes(point: ExtensionPoint, arguments: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
    """The valid shapes of scores; by columns, one number may stand for all nodes."""
    if point is ExtensionPoint.COLUMN_ORDER:
        return (), np.shape(arguments[0].used[0])
    if point is ExtensionPoint.NODE_ORDER:
        return ((len(arguments[1].used[arguments[2]]),),)
    return ((len(arguments[0].used) if point is ExtensionPoint.USE_ORDER else len(arguments[0]),),)
