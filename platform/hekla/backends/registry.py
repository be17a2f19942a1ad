"""The kinds of backends, and how one is opened. Each is imported only when it is used."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from hekla.backends.base import Backend
from hekla.domain.errors import Invalid, Problem
from hekla.lib.clock import Clock

_PLACES = {
    "kubernetes": ("hekla.backends.kubernetes.opening", "open_kubernetes"),
    "local": ("hekla.backends.local.backend", "LocalBackend"),
    "simulated": ("hekla.backends.simulated.backend", "SimulatedBackend"),
}
KINDS = tuple(_PLACES)


def open_backend(kind: str, *, cluster: str, config: Mapping[str, Any], home: Path, clock: Clock) -> Backend:
    """The backend of one cluster, which keeps what it must below `home`. Raises Invalid for a wrong configuration."""
    if kind not in _PLACES:
        raise Invalid([Problem("kind", f"“{kind[:40]}” is not one of {', '.join(KINDS)}")])
    module, name = _PLACES[kind]
    opened = getattr(import_module(module), name)(cluster=cluster, config=config, home=home, clock=clock)
    return cast(Backend, opened)
