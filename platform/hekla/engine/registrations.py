"""The functions that plugins registered in a session, by extension point.

They are guarded and put in order at the first query of their point: of fifty functions, a cycle queries twenty.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.faults import guarded
from hekla.engine.policy import PluginOption
from hekla.engine.victim_selection import NamedFunction

PluginFunction = Callable[..., Any]
_Registered = tuple[PluginOption, PluginFunction]


class Registrations:
    """The registered functions of one session under the tiers of its policy."""

    def __init__(self, tiers: Sequence[Sequence[PluginOption]]) -> None:
        self._policy_tiers = tiers
        self._registered: dict[ExtensionPoint, dict[int, _Registered]] = defaultdict(dict)
        """By the identity of the option."""
        self._builtin: dict[ExtensionPoint, list[PluginFunction]] = defaultdict(list)
        """Functions that run before all plugins under every policy."""
        self._uncacheable: set[ExtensionPoint] = set()
        self._guarded: dict[ExtensionPoint, Mapping[int, PluginFunction]] = {}
        self._by_tier: dict[ExtensionPoint, list[list[PluginFunction]]] = {}
        self._flattened: dict[ExtensionPoint, list[PluginFunction]] = {}
        self._named: dict[ExtensionPoint, list[list[NamedFunction]]] = {}

    def clear(self) -> None:
        """Drop all functions: they refer to the session."""
        self._registered.clear()
        self._builtin.clear()
        for point in [*self._guarded]:
            self._forget(point)

    def add(self, point: ExtensionPoint, option: PluginOption, function: PluginFunction, *, is_cacheable: bool) -> None:
        """Add a plugin's function."""
        self._registered[point][id(option)] = option, function
        if not is_cacheable:
            self._uncacheable.add(point)
        if point in self._guarded:
            self._forget(point)

    def add_builtin(self, point: ExtensionPoint, function: PluginFunction) -> None:
        """Add a function before those of all plugins."""
        self._builtin[point].append(function)
        self._forget(point)

    def _forget(self, point: ExtensionPoint) -> None:
        """Guard and order the functions of a point again at its next query."""
        self._guarded.pop(point, None)
        self._by_tier.pop(point, None)
        self._flattened.pop(point, None)
        self._named.pop(point, None)

    def is_cacheable(self, point: ExtensionPoint) -> bool:
        """Whether all functions of a point are cacheable (`Session.register`)."""
        return point not in self._uncacheable

    def has_any(self, point: ExtensionPoint) -> bool:
        """Whether a plugin registered at a point."""
        return point in self._registered

    def points_of(self, option: PluginOption) -> frozenset[ExtensionPoint]:
        """The points at which a plugin registered."""
        return frozenset(point for point, functions in self._registered.items() if id(option) in functions)

    def _of(self, point: ExtensionPoint) -> Mapping[int, PluginFunction]:
        found = self._guarded.get(point)
        if found is None:
            registered = self._registered.get(point, {})
            found = {key: guarded(option, point, function) for key, (option, function) in registered.items()}
            self._guarded[point] = found
        return found

    def by_tier(self, point: ExtensionPoint) -> list[list[PluginFunction]]:
        """The functions of a point tier by tier, the builtin ones first."""
        found = self._by_tier.get(point)
        if found is None:
            functions = self._of(point)
            found = [self._builtin[point]] if point in self._builtin else []
            if functions:
                found += [[functions[id(one)] for one in tier if id(one) in functions] for tier in self._policy_tiers]
            self._by_tier[point] = found
        return found

    def flattened(self, point: ExtensionPoint) -> list[PluginFunction]:
        """All functions of a point, in order."""
        found = self._flattened.get(point)
        if found is None:
            found = self._flattened[point] = [function for tier in self.by_tier(point) for function in tier]
        return found

    def named(self, point: ExtensionPoint) -> list[list[NamedFunction]]:
        """The functions of a point with their plugins' names, by tier, without the builtin ones."""
        found = self._named.get(point)
        if found is None:
            functions = self._of(point)
            found = [
                [(one.name, functions[id(one)]) for one in tier if id(one) in functions] for tier in self._policy_tiers
            ]
            self._named[point] = found
        return found
