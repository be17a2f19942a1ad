"""The actions and plugins there are: those of the engine, and one's own by entry point.

A package adds its own under the groups `hekla.actions` and `hekla.plugins`; the name of the entry point is the name in
a policy. Each is a module or object with one function: `execute(session, arguments)` for an action,
`open_session(session, option)` for a plugin. One that cannot be loaded fails where a policy uses it, and only there.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from hekla.engine.policy import Argument, PluginOption
    from hekla.engine.session import Session

_ACTIONS = ("enqueue", "allocate", "preempt", "reclaim", "gangpreempt", "gangreclaim", "backfill", "shuffle")
_PLUGINS = (
    "binpack", "capacity", "cdp", "colocation", "conformance", "data-locality", "deviceshare", "drf", "extender",
    "gang", "namespace-order", "network-topology-aware", "nodegroup", "nodeorder", "numaaware", "overcommit", "pdb",
    "predicates", "priority", "proportion", "queue-policy", "rescheduling", "reservation", "resource-strategy-fit",
    "resourcequota", "sla", "task-topology", "tdm", "usage",
)  # fmt: skip


class Action(Protocol):
    """One step of a cycle."""

    def execute(self, session: "Session", arguments: "Mapping[str, Argument]") -> None:
        """Decide on the session what this step is about."""


class Plugin(Protocol):
    """A voice in the decisions."""

    def open_session(self, session: "Session", option: "PluginOption") -> None:
        """Register what this plugin has to say in this session."""


@cache
def actions() -> Mapping[str, Action]:
    """Every action by its name."""
    own = {name: cast(Action, _module("actions", name)) for name in _ACTIONS}
    return MappingProxyType(own | {entry.name: cast(Action, _load(entry)) for entry in _entries("hekla.actions")})


@cache
def plugins() -> Mapping[str, Plugin]:
    """Every plugin by its name."""
    own = {name: cast(Plugin, _module("plugins", name)) for name in _PLUGINS}
    return MappingProxyType(own | {entry.name: cast(Plugin, _load(entry)) for entry in _entries("hekla.plugins")})


@cache
def is_foreign(name: str) -> bool:
    """Whether a plugin is not one of the engine's own."""
    return name not in _PLUGINS or any(entry.name == name for entry in _entries("hekla.plugins"))


def forget() -> None:
    """Look again at what there is."""
    for kept in (actions, plugins, is_foreign, _entries):
        kept.cache_clear()


def _module(kind: str, name: str) -> object:
    return import_module(f"hekla.engine.{kind}.{name.replace('-', '_')}")


@cache
def _entries(group: str) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=group))


def _load(entry: EntryPoint) -> object:
    try:
        return entry.load()
    except Exception as error:  # whatever somebody else's module does when it is imported
        return _Broken(error)


class _Broken:
    """In place of what could not be loaded: fails in the same way whenever it is used."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def open_session(self, _session: "Session", _option: "PluginOption") -> None:
        """As a plugin."""
        raise self._error

    def execute(self, _session: "Session", _arguments: "Mapping[str, Argument]") -> None:
        """As an action."""
        raise self._error
