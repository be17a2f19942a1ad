"""The parts of pages that are sent again when something changed.

A page names its view (`job`) and its parameters; here stand, for each view, the topics that concern it and the function
that renders its live parts for one person. `hekla.project` fills the registry, since only it knows all pages.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hekla.apps.accounts.models import User
from hekla.domain.errors import NotFound

Params = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LiveView:
    """`topics`: what it listens to, for this person. `render`: its live parts as they are now. Both raise NotFound."""

    topics: Callable[[User, Params], frozenset[str]]
    render: Callable[[User, Params], str]


_views: dict[str, LiveView] = {}


def register(name: str, view: LiveView) -> None:
    """Make a page live under this name."""
    _views[name] = view


def find(name: str) -> LiveView:
    """The view of that name. Raises NotFound."""
    if name not in _views:
        raise NotFound("There is no such live view.")
    return _views[name]
