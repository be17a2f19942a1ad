"""The installed kinds of backends.

Kinds are entry points of the group `hekla.backends`; the built-in ones are loaded in the same way.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from hekla.backends.base import Backend, Health
from hekla.backends.config import parse_config
from hekla.backends.kind import BackendContext, BackendKind
from hekla.domain.errors import Invalid, Problem

ENTRY_POINTS = "hekla.backends"
_BUILT_IN = tuple(
    EntryPoint(kind, f"hekla.backends.{kind}.kind:KIND", ENTRY_POINTS) for kind in ("local", "kubernetes", "simulated")
)


@cache
def kinds() -> Mapping[str, BackendKind]:
    """All kinds by name, built-in ones first. Exceptions of a broken package propagate, to be noticed early."""
    found: dict[str, BackendKind] = {}
    for entry in (*_BUILT_IN, *entry_points(group=ENTRY_POINTS)):
        if entry.name not in found:
            found[entry.name] = entry.load()
    return found


def choices() -> list[tuple[str, str]]:
    """The name and label of each kind."""
    return [(name, kind.label) for name, kind in kinds().items()]


def open_backend(kind: str, config: Mapping[str, Any], context: BackendContext) -> Backend:
    """Open the backend of one cluster. Raises Invalid if the configuration is wrong."""
    if kind not in kinds():
        raise Invalid([Problem("kind", f"“{kind[:40]}” is not one of {', '.join(kinds())}")])
    return kinds()[kind].open(parse_config(kinds()[kind].config, config), context)


def reports_health(kind: str) -> bool:
    """Whether clusters of this kind support health checks."""
    return kind in kinds() and kinds()[kind].check_health is not None


def measures_files(kind: str) -> bool:
    """Whether clusters of this kind know the room that the files of a job take."""
    return kind in kinds() and kinds()[kind].measures_files


def check_health(kind: str, config: Mapping[str, Any], context: BackendContext) -> Health | None:
    """The present health of such a cluster; None if its kind has no health check. Raises Invalid."""
    check = kinds()[kind].check_health if kind in kinds() else None
    return check(parse_config(kinds()[kind].config, config), context) if check else None
