"""The kinds of backends, and how one is opened. Each is imported only when it is used."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from hekla.backends.base import Backend, Health
from hekla.domain.errors import Invalid, Problem
from hekla.lib.clock import Clock

_PLACES = {
    "kubernetes": ("hekla.backends.kubernetes.opening", "open_kubernetes"),
    "local": ("hekla.backends.local.backend", "LocalBackend"),
    "simulated": ("hekla.backends.simulated.backend", "SimulatedBackend"),
}
_HEALTH = {"kubernetes": "hekla.backends.kubernetes.health"}
KINDS = tuple(_PLACES)


def open_backend(
    kind: str, *, cluster: str, config: Mapping[str, Any], home: Path, clock: Clock, key: str | None = None
) -> Backend:
    """The backend of one cluster, which keeps what it must below `home`. Raises Invalid for a wrong configuration.

    `key`: what the console keeps to be let in there, where it keeps anything; only some kinds want one.
    """
    if kind not in _PLACES:
        raise Invalid([Problem("kind", f"“{kind[:40]}” is not one of {', '.join(KINDS)}")])
    module, name = _PLACES[kind]
    more = {} if key is None else {"key": key}
    opened = getattr(import_module(module), name)(cluster=cluster, config=config, home=home, clock=clock, **more)
    return cast(Backend, opened)


def tells_health(kind: str) -> bool:
    """Whether clusters of this kind can be asked how they are."""
    return kind in _HEALTH


def health(kind: str, *, config: Mapping[str, Any], home: Path, key: str | None = None) -> Health:
    """How such a cluster is, asked at this moment and for a bounded time. Raises Invalid for a wrong configuration."""
    found: Health = import_module(_HEALTH[kind]).look(config=config, home=home, key=key)
    return found
