"""The registry of actions and plugins: the engine's own, and external ones by entry point.

Entry points are in the groups `hekla.actions` and `hekla.plugins`; their name is the name in a policy. Each is a module
or object with one function: `execute(session, arguments)` for an action, `open_session(session, option)` for a plugin.
A broken entry point fails only when a policy uses it.
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
    "binpack", "capacity", "capacity-card", "cdp", "colocation", "conformance", "data-locality", "deviceshare", "drf",
    "extender", "gang", "namespace-order", "network-topology-aware", "nodegroup", "nodeorder", "numa-aware",
    "overcommit", "pdb", "predicates", "priority", "proportion", "queue-policy", "rescheduling", "reservation",
    "resource-strategy-fit", "resourcequota", "sla", "task-topology", "tdm", "usage",
)  # fmt: skip


class SchedulerAction(Protocol):
    """One step of a cycle."""

    def execute(self, session: "Session", arguments: "Mapping[str, Argument]") -> None:
        """Run the action on the session."""


class Plugin(Protocol):
    """A plugin registers functions at extension points."""

    def open_session(self, session: "Session", option: "PluginOption") -> None:
        """Register the plugin's functions."""


@cache
def actions() -> Mapping[str, SchedulerAction]:
    """All actions by name."""
    own = {name: cast(SchedulerAction, _module("actions", name)) for name in _ACTIONS}
    return MappingProxyType(
        own | {entry.name: cast(SchedulerAction, _load(entry)) for entry in _entries("hekla.actions")}
    )


@cache
def plugins() -> Mapping[str, Plugin]:
    """All plugins by name."""
    own = {name: cast(Plugin, _module("plugins", name)) for name in _PLUGINS}
    return MappingProxyType(own | {entry.name: cast(Plugin, _load(entry)) for entry in _entries("hekla.plugins")})


@cache
def node_annotations() -> frozenset[str]:
    """The annotations of nodes that some plugin reads, as its module declares them: `NODE_ANNOTATIONS`, a tuple.

    Others are not stored. The names are exact: agents keep changing some annotations beside those that plugins read.
    """
    declared = (getattr(plugin, "NODE_ANNOTATIONS", ()) for plugin in plugins().values())
    return frozenset(name for names in declared for name in names)


@cache
def reads_clock(name: str) -> bool:
    """Whether the decisions of a plugin change with time alone.

    Its module declares that as `READS_CLOCK`. A plugin of another package that declares nothing may do so.
    """
    return bool(getattr(plugins().get(name), "READS_CLOCK", is_external(name)))


@cache
def looks_at_nodes_only(name: str) -> bool:
    """Whether a plugin does nothing before pods are placed: its module declares that as `LOOKS_AT_NODES_ONLY`."""
    return bool(getattr(plugins().get(name), "LOOKS_AT_NODES_ONLY", False))


@cache
def has_external(names: tuple[str, ...]) -> bool:
    """Whether one of these actions comes from another package."""
    return not {*names} <= {*_ACTIONS} or any(entry.name in names for entry in _entries("hekla.actions"))


@cache
def is_external(name: str) -> bool:
    """Whether a plugin comes from another package."""
    return name not in _PLUGINS or any(entry.name == name for entry in _entries("hekla.plugins"))


def reload() -> None:
    """Clear the caches, so that entry points are read again."""
    by_name = reads_clock, looks_at_nodes_only, is_external
    for cached in (actions, plugins, node_annotations, *by_name, has_external, _entries):
        cached.cache_clear()


def _module(kind: str, name: str) -> object:
    return import_module(f"hekla.engine.{kind}.{name.replace('-', '_')}")


@cache
def _entries(group: str) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=group))


def _load(entry: EntryPoint) -> object:
    try:
        return entry.load()
    except Exception as error:  # an external module may raise anything when it is imported
        return _Broken(error)


class _Broken:
    """Replaces an entry point that cannot be imported: raises its error on use."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def open_session(self, _session: "Session", _option: "PluginOption") -> None:
        """Raise the error, as a plugin."""
        raise self._error

    def execute(self, _session: "Session", _arguments: "Mapping[str, Argument]") -> None:
        """Raise the error, as an action."""
        raise self._error
