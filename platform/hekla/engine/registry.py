"""The actions and plugins there are: those of the engine, and one's own by entry point.

A package adds its own under the groups `hekla.actions` and `hekla.plugins`; the name of the entry point is the name in
a policy. Each is a module or object with one function: `execute(session, arguments)` for an action,
`open_session(session, option)` for a plugin.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from hekla.engine.policy import Argument, PluginOption
    from hekla.engine.session import Session

_ACTIONS = ("enqueue", "allocate", "preempt", "reclaim", "gangpreempt", "gangreclaim", "backfill", "shuffle")
_PLUGINS = (
    "binpack", "capacity", "conformance", "deviceshare", "drf", "gang", "network-topology-aware", "nodeorder",
    "overcommit", "predicates", "priority", "proportion", "sla", "task-topology", "tdm",
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
    own = {name: cast(Action, import_module(f"hekla.engine.actions.{name}")) for name in _ACTIONS}
    return MappingProxyType(own | {entry.name: entry.load() for entry in entry_points(group="hekla.actions")})


@cache
def plugins() -> Mapping[str, Plugin]:
    """Every plugin by its name."""
    own = {name: cast(Plugin, import_module(f"hekla.engine.plugins.{name.replace('-', '_')}")) for name in _PLUGINS}
    return MappingProxyType(own | {entry.name: entry.load() for entry in entry_points(group="hekla.plugins")})
